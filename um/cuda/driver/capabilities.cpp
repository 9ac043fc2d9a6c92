#include "um/cuda/driver/capabilities.h"

#include <utility>

namespace spillway::um {
namespace {

Capability capability(std::string name, bool available, std::string with, std::string without) {
  return {.name = std::move(name),
          .available = available,
          .comment = available ? std::move(with) : std::move(without)};
}

std::string page_tables(const CudaFacts& facts) {
  if (facts.uses_host_page_tables) return "memory from malloc(), by the processor's page tables";
  return "memory from malloc(), by page tables of its own";
}

}  // namespace

std::vector<Capability> describe(const CudaFacts& facts, const std::optional<std::string>& link,
                                 const std::optional<std::string>& no_counters) {
  const std::string engines = std::to_string(facts.copy_engines);
  return {
      {.name = "cuda",
       .available = true,
       .comment = "driver for CUDA " + version_text(facts.driver_version) + ", built with " +
                  version_text(facts.runtime_version)},
      capability("managed", facts.has_concurrent_managed_access,
                 "unified memory moved by hints (concurrentManagedAccess)",
                 "concurrentManagedAccess is 0, as on WSL, Windows and Jetson: use --memory copy"),
      capability("discard", facts.has_discard, "dead pages are dropped, not moved",
                 "the driver has no discard; one for CUDA 13.0 or newer has it"),
      capability("pageable", facts.has_pageable_access, page_tables(facts),
                 "the GPU does not read memory from malloc()"),
      capability("duplex", facts.copy_engines > 1, engines + " copy engines: both ways at once",
                 engines + " copy engine: one way at a time"),
      capability("link", link.has_value(), link.value_or(""),
                 "Linux does not tell the link of " + facts.pci_bus + " here"),
      capability("counters", !no_counters, "page faults and moves by cause, by CUPTI",
                 no_counters.value_or("")),
  };
}

}  // namespace spillway::um
