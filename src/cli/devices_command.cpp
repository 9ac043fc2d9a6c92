#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "src/cli/commands.h"
#include "src/cli/flags/device_flags.h"
#include "src/host/host_backend.h"
#include "um/error.h"
#include "um/host/host_device.h"

namespace spillway::cli {
namespace {

// Capabilities in words for people; programs read their names.
const std::map<std::string, std::string> kLabels{{"uffd_move", "unified memory, userfaultfd"},
                                                 {"memfd_segv", "unified memory, SIGSEGV"},
                                                 {"huge_pages", "transparent huge pages"},
                                                 {"bf16", "bfloat16"},
                                                 {"cuda", "CUDA driver"},
                                                 {"managed", "unified memory"},
                                                 {"discard", "page discard"},
                                                 {"pageable", "pageable memory access"},
                                                 {"duplex", "concurrent copies"},
                                                 {"link", "interconnect"},
                                                 {"counters", "hardware counters"}};

std::string label_of(const um::Capability& capability) {
  const auto found = kLabels.find(capability.name);
  return found == kLabels.end() ? capability.name : found->second;
}

// Facts about one device, or why it cannot be used.
struct ListedDevice {
  std::string name;     // as --device takes it
  std::string trouble;  // empty when it can be used
  std::string description;
  std::string kernels;
  um::Bytes available;
  std::vector<um::Capability> capabilities;
};

ListedDevice unusable(std::string name, const um::Error& error) {
  ListedDevice found;
  found.name = std::move(name);
  found.trouble = error.what();
  return found;
}

void describe_device(const um::Device& device, ListedDevice& found) {
  found.description = device.name();
  found.available = device.available_memory();
  found.capabilities = device.capabilities();
}

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
  ListedDevice found;
  found.name = "host";
  describe_device(um::HostDevice{}, found);
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
    ListedDevice found;
    found.name = name;
    describe_device(*context.device, found);
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

nlohmann::json to_json(const ListedDevice& found) {
  if (!found.trouble.empty()) {
    return {{"name", found.name}, {"usable", false}, {"reason", found.trouble}};
  }
  nlohmann::json capabilities = nlohmann::json::array();
  for (const um::Capability& capability : found.capabilities) {
    capabilities.push_back({{"name", capability.name},
                            {"available", capability.available},
                            {"comment", capability.comment}});
  }
  return {{"name", found.name},
          {"usable", true},
          {"description", found.description},
          {"backend", found.kernels},
          {"available_memory_bytes", found.available.count()},
          {"capabilities", std::move(capabilities)}};
}

void print(const ListedDevice& found) {
  if (!found.trouble.empty()) {
    fmt::print("{}: not usable: {}\n", found.name, found.trouble);
    return;
  }
  fmt::print("{}: {}\n", found.name, found.description);
  fmt::print("  {:<28} {}\n", "kernels", found.kernels);
  fmt::print("  {:<28} {}\n", "available memory", um::to_string(found.available));
  for (const um::Capability& capability : found.capabilities) {
    fmt::print("  {:<28} {}: {}\n", label_of(capability), capability.available ? "yes" : "no",
               capability.comment);
  }
}

void show(const std::string& json_path) {
  const std::vector<ListedDevice> all = find_devices();
  if (!json_path.empty()) {
    nlohmann::json list = nlohmann::json::array();
    for (const ListedDevice& found : all) list.push_back(to_json(found));
    prefetch::write_json(list, json_path);
    if (json_path == "-") return;
  }
  for (const ListedDevice& found : all) print(found);
}

}  // namespace

void add_devices_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand(
      "devices", "List devices, their capabilities, and why a device cannot be used");
  const auto json = std::make_shared<std::string>();  // shared with the callback
  command->add_option("--json", *json,
                      "Write the list as JSON to this file, - for standard output");
  command->footer("Example: spillway devices");
  command->callback([json] { show(*json); });
}

}  // namespace spillway::cli
