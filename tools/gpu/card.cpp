#include "tools/gpu/card.h"

namespace spillway::gpu {

using nlohmann::json;

json to_json(const um::CudaFacts& facts) {
  return {{"name", facts.name},
          {"ordinal", facts.ordinal},
          {"driver_version", facts.driver_version},
          {"runtime_version", facts.runtime_version},
          {"compute_capability", facts.compute_capability},
          {"memory_bytes", facts.memory.count()},
          {"copy_engines", facts.copy_engines},
          {"has_concurrent_managed_access", facts.has_concurrent_managed_access},
          {"has_pageable_access", facts.has_pageable_access},
          {"uses_host_page_tables", facts.uses_host_page_tables},
          {"has_discard", facts.has_discard},
          {"pci_bus", facts.pci_bus}};
}

json to_json(const std::vector<um::Capability>& capabilities) {
  json all = json::array();
  for (const um::Capability& each : capabilities) {
    all.push_back({{"name", each.name}, {"available", each.available}, {"comment", each.comment}});
  }
  return all;
}

}  // namespace spillway::gpu
