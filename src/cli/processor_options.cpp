#include "src/cli/processor_options.h"

#include <memory>

#include "src/host/host_backend.h"
#include "um/error.h"
#include "um/host/host_device.h"

namespace spillway::cli {
namespace {

constexpr const char* kDevice = "Device";

Processor open_host(std::size_t threads) {
  Processor processor{.threads = threads, .device = std::make_unique<um::HostDevice>()};
  auto backend = std::make_unique<host::HostBackend>(threads);
  processor.compute = processor.device->make_stream("compute");
  processor.compute->enqueue(
      [&] { backend->start_threads([&] { processor.device->prepare_kernel_thread(); }); });
  processor.compute->synchronize();
  processor.backend = std::move(backend);
  return processor;
}

}  // namespace

void ProcessorOptions::add_to(CLI::App& app) {
  app.add_option("--device", device, "auto, host or cuda[:N]; spillway devices lists them")
      ->capture_default_str()
      ->group(kDevice);
  app.add_option("--threads", threads,
                 "Threads of the kernels; results depend on the number (default: all processors)")
      ->check(CLI::Range(1, 1024))
      ->group(kDevice);
}

Processor ProcessorOptions::open() const {
  if (device == "auto" || device == "host") {
    return open_host(threads > 0 ? static_cast<std::size_t>(threads) : host::usable_cpus());
  }
  if (device == "cuda" || device.starts_with("cuda:")) {
    throw um::Error{"this program has no CUDA device yet; use --device host"};
  }
  throw um::Error{"there is no device '" + device + "'; there is host"};
}

}  // namespace spillway::cli
