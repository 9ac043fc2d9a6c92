#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "src/cli/commands.h"
#include "src/cli/device_listing.h"
#include "src/cli/flags/device_flags.h"
#include "src/host/host_backend.h"
#include "um/error.h"
#include "um/host/host_device.h"

namespace spillway::cli {
namespace {

um::Capability bf16_capability() {
  switch (host::bf16_support()) {
    case host::Bf16Support::kNative:
      return {.name = "bf16", .available = true, .comment = "AVX-512 BF16 instructions"};
    case host::Bf16Support::kEmulated:
      return {.name = "bf16",
              .available = false,
              .comment = "emulated with --emulate-bf16, slower than fp32"};
    case host::Bf16Support::kNone:
      break;
  }
  return {.name = "bf16", .available = false, .comment = "takes AVX-512"};
}

// Describes the host even without kernels, which is when users look it up.
ListedDevice find_host() {
  ListedDevice found = describe_device("host", um::HostDevice{});
  found.capabilities.push_back(bf16_capability());
  try {
    found.kernels = host::HostBackend{}.description();
  } catch (const um::Error& error) {
    found.kernels = std::string{"none: "} + error.what();
  }
  return found;
}

ListedDevice find_gpu(const CudaPlugin& cuda, std::size_t ordinal) {
  const std::string name = fmt::format("cuda:{}", ordinal);
  try {
    const ExecutionContext context = cuda.open({.ordinal = ordinal});
    ListedDevice found = describe_device(name, *context.device);
    found.kernels = context.backend->description();
    return found;
  } catch (const um::Error& error) {
    return unusable(name, error);
  }
}

std::vector<ListedDevice> find_devices() {
  std::vector<ListedDevice> all{find_host()};
  try {
    const CudaPlugin& cuda = load_cuda_side();
    const std::size_t count = cuda.count_devices();
    for (std::size_t ordinal = 0; ordinal < count; ++ordinal) {
      all.push_back(find_gpu(cuda, ordinal));
    }
  } catch (const um::Error& error) {
    all.push_back(unusable("cuda", error));
  }
  return all;
}

void show(const std::string& json_path) {
  const std::vector<ListedDevice> all = find_devices();
  if (!json_path.empty()) {
    nlohmann::json list = nlohmann::json::array();
    for (const ListedDevice& found : all) list.push_back(to_json(found));
    prefetch::write_json(list, json_path);
    if (json_path == "-") return;
  }
  for (const ListedDevice& found : all) fmt::print("{}", to_text(found));
}

}  // namespace

void add_devices_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("devices",
                                               "List devices, their capabilities, how train uses "
                                               "their memory, and why a device cannot be used");
  const auto json = std::make_shared<std::string>();  // shared with the callback
  command->add_option("--json", *json,
                      "Write the list as JSON to this file, - for standard output");
  command->footer("Example: spillway devices");
  command->callback([json] { show(*json); });
}

}  // namespace spillway::cli
