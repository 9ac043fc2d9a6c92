#include "um/cuda/driver/capabilities.h"

#include <string>
#include <utility>

#include "um/error.h"
#include "um/machine/available_memory.h"

namespace spillway::um {
namespace {

Capability capability(std::string name, bool available, std::string with, std::string without) {
  return {.name = std::move(name),
          .available = available,
          .comment = available ? std::move(with) : std::move(without)};
}

// The driver moves and allocates memory in units of 2 MiB.
constexpr Bytes kUnit = 2_MiB;

void expect_far_ram(const FarOptions& far) {
  if (!far.file.empty()) throw Error{"a GPU keeps far memory in RAM; leave out --far file"};
}

void expect_own_link(const LinkOptions& link) {
  if (link.bandwidth || link.latency > Nanoseconds{0}) {
    throw Error{"a GPU's link cannot be slowed down; leave out --link-bandwidth and its latency"};
  }
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
      capability("pageable", facts.has_pageable_access,
                 facts.uses_host_page_tables
                     ? "memory from malloc(), by the processor's page tables"
                     : "memory from malloc(), by page tables of its own",
                 "the GPU does not read memory from malloc()"),
      capability("duplex", facts.copy_engines > 1, engines + " copy engines: both ways at once",
                 engines + " copy engine: one way at a time"),
      capability("link", link.has_value(), link.value_or(""),
                 "Linux does not tell the link of " + facts.pci_bus + " here"),
      capability("counters", !no_counters, "page faults and moves by cause, by CUPTI",
                 no_counters.value_or("")),
  };
}

void expect_far_room(Bytes size, const std::string& deed) {
  constexpr Bytes kRamMargin = 1_GiB;  // the RAM that far memory leaves to other uses
  expect_available(size + kRamMargin, deed, kFarAdvice);
}

const ManagedOptions& checked(const ManagedOptions& options, const CudaFacts& facts) {
  if (!facts.has_concurrent_managed_access) {
    throw Error{"unified memory cannot be moved by hints on " + facts.name +
                " here (concurrentManagedAccess is 0, as on WSL, Windows and Jetson); use --memory "
                "copy"};
  }
  expect_far_ram(options.far);
  expect_own_link(options.link);
  if (options.paging != Paging::kAuto || options.fault_latency > Nanoseconds{0}) {
    throw Error{"a GPU pages by itself; leave out --paging and the latency of page faults"};
  }
  if (options.page < kUnit || options.page.count() % kUnit.count() != 0) {
    throw Error{"a GPU moves unified memory in units of " + to_string(kUnit) +
                "; pages must be a multiple of that, not " + to_string(options.page)};
  }
  expects(options.size > Bytes{} && options.size.count() % options.page.count() == 0,
          "a managed space consists of whole pages");
  if (options.far.used > Bytes{}) {
    expect_far_room(options.far.used, "put " + to_string(options.far.used) +
                                          " of unified memory, which the plan moves far, in RAM");
  }
  return options;
}

const CopyOptions& checked(const CopyOptions& options) {
  expect_far_ram(options.far);
  expect_own_link(options.link);
  return options;
}

}  // namespace spillway::um
