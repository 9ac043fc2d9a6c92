#include "src/cli/device_listing.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/plan/plans.h"

namespace spillway::cli {
namespace {

// Capabilities in words for people; programs read their names.
const std::map<std::string, std::string> kLabels{{"uffd_move", "unified memory, userfaultfd"},
                                                 {"memfd_segv", "unified memory, SIGSEGV"},
                                                 {"huge_pages", "transparent huge pages"},
                                                 {"tf32", "TF32"},
                                                 {"bf16", "bfloat16"},
                                                 {"cuda", "CUDA driver"},
                                                 {"whole_gpu", "whole GPU"},
                                                 {"own_memory", "memory of its own"},
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

}  // namespace

ListedDevice unusable(std::string name, const um::Error& error) {
  ListedDevice listed;
  listed.name = std::move(name);
  listed.trouble = error.what();
  return listed;
}

ListedDevice describe_device(std::string name, const um::Device& device) {
  const um::MemoryFacts memory = device.memory_facts();
  return {.name = std::move(name),
          .trouble = {},
          .description = device.name(),
          .kernels = {},
          .available = device.available_memory(),
          .total = memory.total,
          .memory = choose_memory(memory, {}),
          .capabilities = device.capabilities()};
}

nlohmann::json to_json(const ListedDevice& listed) {
  if (!listed.trouble.empty()) {
    return {{"name", listed.name}, {"usable", false}, {"reason", listed.trouble}};
  }
  nlohmann::json capabilities = nlohmann::json::array();
  for (const um::Capability& capability : listed.capabilities) {
    capabilities.push_back({{"name", capability.name},
                            {"available", capability.available},
                            {"comment", capability.comment}});
  }
  return {{"name", listed.name},
          {"usable", true},
          {"description", listed.description},
          {"backend", listed.kernels},
          {"available_memory_bytes", listed.available.count()},
          {"total_memory_bytes", listed.total.count()},
          {"memory", to_string(listed.memory.mode)},
          {"memory_reason", listed.memory.reason},
          {"capabilities", std::move(capabilities)}};
}

std::string to_text(const ListedDevice& listed) {
  if (!listed.trouble.empty()) {
    return fmt::format("{}: not usable: {}\n", listed.name, listed.trouble);
  }
  std::string text = fmt::format("{}: {}\n", listed.name, listed.description);
  const auto add = [&](const std::string& label, const std::string& value) {
    text += fmt::format("  {:<28} {}\n", label, value);
  };
  add("kernels", listed.kernels);
  add("available memory", um::to_string(listed.available) + " of " + um::to_string(listed.total));
  add("train --memory auto",
      fmt::format("{}: {}", to_string(listed.memory.mode), listed.memory.reason));
  for (const um::Capability& capability : listed.capabilities) {
    add(label_of(capability),
        fmt::format("{}: {}", capability.available ? "yes" : "no", capability.comment));
  }
  return text;
}

}  // namespace spillway::cli
