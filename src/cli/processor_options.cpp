#include "src/cli/processor_options.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/host/host_processor.h"
#include "um/error.h"
#include "um/host/host_device.h"

namespace spillway::cli {
namespace {

constexpr const char* kDevice = "Device";

// auto, host, cuda or cuda:N.
std::string check_device(const std::string& text) {
  constexpr std::string_view kNumbered = "cuda:";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text == "auto" || text == "host" || text == "cuda") return {};
  if (text.starts_with(kNumbered) && text.size() > kNumbered.size() &&
      std::all_of(text.begin() + kNumbered.size(), text.end(), is_digit)) {
    return {};
  }
  return "there is no device '" + text + "'; give auto, host or cuda[:N]";
}

}  // namespace

void ProcessorOptions::add_to(CLI::App& app) {
  app.add_option("--device", device, "auto, host or cuda[:N]; spillway devices lists them")
      ->check(check_device)
      ->capture_default_str()
      ->group(kDevice);
  add_threads_to(app);
}

void ProcessorOptions::add_threads_to(CLI::App& app) {
  app.add_option("--threads", threads,
                 "Threads of the kernels, which results and workspaces depend on (default: all "
                 "processors)")
      ->check(CLI::Range(1, 1024))
      ->group(kDevice);
}

Processor ProcessorOptions::open() const {
  if (device == "auto" || device == "host") {
    return host::open_processor(std::make_unique<um::HostDevice>(), thread_count());
  }
  throw um::Error{"this program has no CUDA device yet; use --device host"};
}

std::size_t ProcessorOptions::thread_count() const {
  return threads > 0 ? static_cast<std::size_t>(threads) : host::usable_cpus();
}

std::unique_ptr<host::HostBackend> ProcessorOptions::make_host_backend() const {
  return std::make_unique<host::HostBackend>(thread_count());
}

}  // namespace spillway::cli
