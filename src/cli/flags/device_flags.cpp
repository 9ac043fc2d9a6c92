#include "src/cli/flags/device_flags.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/cli/flags/flag_values.h"
#include "src/cli/terminal/terminal.h"
#include "src/host/host_backend.h"
#include "src/io/file_digest.h"
#include "src/plan/budget.h"
#include "src/train/checkpoint/settings.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/files/input_file.h"
#include "um/host/host_device.h"
#include "um/machine/plug_in.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

constexpr const char* kDevice = "Device";
constexpr std::string_view kNumbered = "cuda:";

// The number in "cuda:N".
std::optional<std::size_t> ordinal_of(std::string_view device) {
  if (!device.starts_with(kNumbered)) return std::nullopt;
  device.remove_prefix(kNumbered.size());
  std::size_t ordinal = 0;
  const auto [end, error] = std::from_chars(device.data(), device.data() + device.size(), ordinal);
  if (error != std::errc{} || end != device.data() + device.size() || ordinal > 1'000) {
    return std::nullopt;
  }
  return ordinal;
}

// The GPUs of this machine, which may still turn out to be of no use.
struct FoundGpus {
  std::size_t count = 0;
  std::string why_none;  // empty: there are some, or there is not even a driver
};

FoundGpus find_gpus() {
  if (!has_nvidia_driver()) return {};
  try {
    const std::size_t count = load_cuda_side().count_devices();
    return {.count = count, .why_none = count == 0 ? "NVIDIA's driver finds none" : ""};
  } catch (const um::Error& error) {
    return {.count = 0, .why_none = error.what()};
  }
}

// auto, host, cuda or cuda:N.
std::string check_device(const std::string& text) {
  if (text == "auto" || text == "host" || text == "cuda" || ordinal_of(text)) return {};
  return "there is no device '" + text + "'; give auto, host or cuda[:N]";
}

std::string check_precision(const std::string& text) {
  if (find_precision(text)) return {};
  return "there is no precision '" + text + "'; give fp32, tf32 or bf16";
}

std::string check_managed_limit(const std::string& text) {
  const double share = parse_percent(text).value_or(0);
  if (um::parse_bytes(text).value_or(um::Bytes{}) > um::Bytes{} || (share > 0 && share <= 1)) {
    return {};
  }
  return "'" + text +
         "' is no limit of unified memory: give bytes (16GiB), or a part of the free memory (25%)";
}

// Requires: check_managed_limit() has nothing to say of `text`.
void add_limit(const std::string& text, CudaRequest& request) {
  if (const std::optional<um::Bytes> bytes = um::parse_bytes(text)) {
    request.managed_limit = std::min(request.managed_limit.value_or(*bytes), *bytes);
  } else {
    const double share = *parse_percent(text);
    request.managed_share = std::min(request.managed_share.value_or(share), share);
  }
}

std::string numbered(std::size_t gpu) { return "cuda:" + std::to_string(gpu); }

}  // namespace

bool has_nvidia_driver() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  dlclose(driver);
  return true;
}

bool is_host(const std::string& device) {
  return device == "host" || (device == "auto" && find_gpus().count == 0);
}

const CudaPlugin& load_cuda_side() {
  const std::string file = "libspillway_cuda.so";
  void* const library = um::load_plug_in(
      {.file = file,
       .folders = um::folders_of_program(SPILLWAY_LIBRARIES_FROM_PROGRAMS),
       .build_function = kCudaBuildFunction,
       .build = SPILLWAY_BUILD,
       .if_absent = "this build has no CUDA side (" + file +
                    " was not found); build it where nvcc and cuDNN are, or use --device host",
       .if_broken = "if CUDA 13's libraries or cuDNN 9 are installed elsewhere, put their folders "
                    "in LD_LIBRARY_PATH, or use --device host",
       .if_foreign = "install both from the same, or use --device host"});
  return *reinterpret_cast<CudaPluginFunction>(um::address_in(library, kCudaPluginFunction))();
}

void DeviceFlags::add_running_to(CLI::App& app) {
  add_device_to(app);
  add_kernels_to(app);
  add_threads_to(app);
  add_managed_limit_to(app);
}

void DeviceFlags::add_to(CLI::App& app) {
  add_device_to(app);
  add_kernels_to(app);
  add_threads_to(app);
  app.add_flag("--count-faults", counts_faults,
               "Count a GPU's page faults and evictions with CUPTI, which slows the run. The host "
               "always counts them")
      ->group(kDevice);
  add_managed_limit_to(app);
}

void DeviceFlags::add_managed_limit_to(CLI::App& app) {
  app.add_option("--managed-limit", managed_limits,
                 "The most unified memory on a GPU that others use, too: bytes, or a part (25%) of "
                 "the memory that is free at the start. The least of several holds: 16GiB,25%")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(check_managed_limit)
      ->group(kDevice);
}

void DeviceFlags::add_sizes_to(CLI::App& app) {
  device = "host";
  add_device_to(app);
  add_kernels_to(app);
  add_threads_to(app);
}

void DeviceFlags::add_memory_to(CLI::App& app) {
  add_device_to(app);
  add_managed_limit_to(app);
}

void DeviceFlags::add_device_to(CLI::App& app) {
  app.add_option("--device", device,
                 "auto (a GPU if there is one), host or cuda[:N]; spillway devices lists them")
      ->check(check_device)
      ->capture_default_str()
      ->group(kDevice);
}

void DeviceFlags::add_precision_to(CLI::App& app) {
  app.add_option(
         "--precision", precision,
         "fp32 (on a GPU without tensor cores, slow), tf32 (on a GPU), or bf16 (activations in "
         "bf16, parameters in fp32; on the host with AVX-512, and without its BF16 instructions "
         "only with --emulate-bf16)")
      ->check(check_precision)
      ->capture_default_str()
      ->group(kDevice);
}

void DeviceFlags::add_kernels_to(CLI::App& app) {
  add_precision_to(app);
  app.add_flag("--emulate-bf16", emulates_bf16,
               "Let the host compute in bf16 without instructions for it, slower than in fp32")
      ->group(kDevice);
  app.add_flag("--deterministic", deterministic,
               "Use only deterministic kernels; the host's kernels always are")
      ->group(kDevice);
}

void DeviceFlags::add_threads_to(CLI::App& app) {
  app.add_option("--threads", threads,
                 "Threads of the host's kernels; results depend on their number (default: all "
                 "processors)")
      ->check(whole_number(kThreadRange.least, kThreadRange.most))
      ->group(kDevice);
}

ExecutionContext DeviceFlags::open() const {
  if (device == "host") return open_host();
  if (device == "auto") {
    const FoundGpus found = find_gpus();
    if (!found.why_none.empty()) tell("note: no GPU is used: {}\n", found.why_none);
    if (found.count == 0) return open_host();
  }
  return use_cuda([&] { return open_cuda(); });
}

void DeviceFlags::expect_host_precision() const {
  if (precision == "tf32") {
    throw um::Error{
        "the host computes in fp32 and bf16, not in tf32; use one of these, or --device cuda"};
  }
  if (emulates_bf16 && precision != "bf16") {
    throw um::Error{"--emulate-bf16 is for --precision bf16"};
  }
}

void DeviceFlags::expect_bf16_instructions() const {
  if (precision != "bf16" || emulates_bf16) return;
  if (host::bf16_support() != host::Bf16Support::kEmulated) return;
  throw um::Error{
      "this processor has no instructions for bf16 (AVX-512 BF16), so that it would be slower "
      "than fp32; use --precision fp32, or --emulate-bf16 all the same"};
}

ExecutionContext DeviceFlags::open_host() const {
  expect_host_precision();
  expect_bf16_instructions();
  if (!managed_limits.empty()) throw um::Error{"--managed-limit is for --device cuda"};
  warn_of_too_many_threads();
  return host::open_context(std::make_unique<um::HostDevice>(), thread_count(), deterministic,
                            chosen_precision());
}

void DeviceFlags::warn_of_too_many_threads() const {
  const std::size_t cpus = host::usable_cpus();
  if (thread_count() <= cpus) return;
  tell("warning: {} threads share {}: they wait for each other, and training is slower\n",
       thread_count(), um::count_of(cpus, "processor"));
}

ExecutionContext DeviceFlags::open_cuda() const {
  if (emulates_bf16) throw um::Error{"--emulate-bf16 is for --device host"};
  CudaRequest request{.ordinal = ordinal_of(device).value_or(0),
                      .precision = chosen_precision(),
                      .deterministic = deterministic,
                      .counts_faults = counts_faults};
  for (const std::string& text : managed_limits) add_limit(text, request);
  return load_cuda_side().open(request);
}

std::shared_ptr<const SizeModel> DeviceFlags::open_size_model() const {
  if (device == "host") return make_host_backend();
  const auto context = std::make_shared<const ExecutionContext>(open());
  return {context, context->backend.get()};
}

Precision DeviceFlags::chosen_precision() const { return *find_precision(precision); }

std::size_t DeviceFlags::thread_count() const {
  return threads > 0 ? static_cast<std::size_t>(threads) : host::usable_cpus();
}

std::unique_ptr<host::HostBackend> DeviceFlags::make_host_backend() const {
  expect_host_precision();
  return std::make_unique<host::HostBackend>(thread_count(), chosen_precision());
}

std::size_t gpu_of_rank(std::size_t gpus, std::size_t rank_on_node, std::size_t ranks_on_node) {
  if (gpus == 1) return 0;  // what it should not be, CudaPlugin::join_ranks() sees
  if (ranks_on_node <= gpus) return rank_on_node;
  throw um::Error{"this machine has " + um::count_of(gpus, "GPU") + " for " +
                  um::count_of(ranks_on_node, "rank") +
                  ", and each needs one of its own; start fewer ranks, or use --device host"};
}

std::string device_of_rank(const std::string& device, const Communicator& ranks) {
  if (device == "host") return device;
  const std::size_t on_node = ranks.ranks_on_node();
  if (device == "auto") {
    return find_gpus().count >= on_node ? numbered(ranks.rank_on_node()) : "host";
  }
  if (device == "cuda") {
    const std::size_t gpus = use_cuda([] { return load_cuda_side().count_devices(); });
    return numbered(gpu_of_rank(gpus, ranks.rank_on_node(), on_node));
  }
  if (on_node == 1) return device;
  throw um::Error{"--device " + device + " is one GPU, and " + um::count_of(on_node, "rank") +
                  " are on this machine; give --device cuda, for a GPU each"};
}

std::function<std::unique_ptr<Communicator>(ExecutionContext&)> joining_of(
    const std::string& device, Communicator& ranks, const CommunicatorOptions& options) {
  if (device == "host") return {};
  return [&ranks, options](ExecutionContext& context) -> std::unique_ptr<Communicator> {
    if (context.device->memory_facts().is_host) return nullptr;
    return load_cuda_side().join_ranks(context, ranks, options);
  };
}

std::vector<NamedText> agreement_of_ranks(const std::string& arguments, const std::string& device) {
  const um::InputFile program{"/proc/self/exe"};
  return {{.name = "program", .text = sha256_of(program)},
          {.name = "command line", .text = arguments},
          {.name = "device", .text = device == "host" ? "host" : "GPU"}};
}

}  // namespace spillway::cli
