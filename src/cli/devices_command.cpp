#include "src/cli/devices_command.h"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prefetch/json.h"
#include "src/host/host_backend.h"
#include "um/error.h"
#include "um/host/host_device.h"

namespace spillway::cli {
namespace {

// Also where there can be none, which is what the user looks for then.
std::string describe_kernels() {
  try {
    return host::HostBackend{}.description();
  } catch (const um::Error& error) {
    return std::string{"none: "} + error.what();
  }
}

void show(const std::string& json_path) {
  const um::HostDevice device;
  const std::string kernels = describe_kernels();
  if (!json_path.empty()) {
    nlohmann::json capabilities = nlohmann::json::array();
    for (const um::Capability& capability : device.capabilities()) {
      capabilities.push_back({{"name", capability.name},
                              {"available", capability.available},
                              {"comment", capability.comment}});
    }
    prefetch::write_json({{{"name", "host"},
                           {"description", device.name()},
                           {"backend", kernels},
                           {"available_memory_bytes", device.available_memory().count()},
                           {"capabilities", std::move(capabilities)}}},
                         json_path);
    if (json_path == "-") return;
  }
  fmt::print("host: {}\n", device.name());
  fmt::print("  kernels           {}\n", kernels);
  fmt::print("  available memory  {}\n", um::to_string(device.available_memory()));
  for (const um::Capability& capability : device.capabilities()) {
    fmt::print("  {:<17} {}: {}\n", capability.name, capability.available ? "yes" : "no",
               capability.comment);
  }
  fmt::print("cuda: not in this program; --device cuda comes with a later version\n");
}

}  // namespace

void add_devices_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("devices", "What was found, what it can do, and why not more");
  const auto json = std::make_shared<std::string>();  // shared: the callback keeps it
  command->add_option("--json", *json, "Write the same as JSON to this file, - for stdout");
  command->footer("Example: spillway devices");
  command->callback([json] { show(*json); });
}

}  // namespace spillway::cli
