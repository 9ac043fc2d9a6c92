#include "um/cuda/driver/capabilities.h"

#include <string>
#include <string_view>
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

// The driver names a slice of a GPU "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
Capability whole_gpu(const std::string& name) {
  constexpr std::string_view kSlice = " MIG ";
  const std::size_t at = name.find(kSlice);
  const bool is_whole = at == std::string::npos;
  return capability("whole_gpu", is_whole, "not a MIG slice",
                    is_whole ? ""
                             : "MIG slice " + name.substr(at + kSlice.size()) +
                                   ", which shares the link with the GPU's other slices");
}

// Tensor cores multiply these numbers since Ampere.
Capability tensor_cores(const std::string& name, int compute_capability) {
  constexpr int kFirst = 80;
  const std::string own =
      std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
  return capability(name, compute_capability >= kFirst, "tensor cores of compute capability " + own,
                    "takes compute capability 8.0, this GPU has " + own);
}

Capability link_of(const CudaFacts& facts, const std::optional<std::string>& link) {
  if (facts.is_integrated) {
    return {.name = "link", .available = false, .comment = "near memory is the host's RAM"};
  }
  if (has_coherent_link(facts)) {
    return {.name = "link", .available = true, .comment = "NVLink-C2C, coherent"};
  }
  return capability("link", link.has_value(), link.value_or(""),
                    "Linux does not tell the link of " + facts.pci_bus + " here");
}

// The driver moves and allocates memory in units of 2 MiB.
constexpr Bytes kUnit = 2_MiB;

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
      whole_gpu(facts.name),
      tensor_cores("tf32", facts.compute_capability),
      tensor_cores("bf16", facts.compute_capability),
      capability("own_memory", !facts.is_integrated, "near memory is the GPU's own",
                 "near memory is the host's RAM: only a file is far (--far file:PATH)"),
      capability("managed", moves_by_hints(facts),
                 "unified memory moved by hints (concurrentManagedAccess)",
                 facts.is_integrated
                     ? "moving pages within the RAM frees nothing"
                     : "concurrentManagedAccess is 0, as on WSL and Windows: use --memory copy"),
      capability("discard", facts.has_discard && moves_by_hints(facts),
                 "dead pages are dropped, not moved",
                 moves_by_hints(facts)
                     ? "the driver has no discard; one for CUDA 13.0 or newer has it"
                     : "only for unified memory that moves by hints"),
      capability("pageable", facts.has_pageable_access,
                 facts.uses_host_page_tables
                     ? "memory from malloc(), by the processor's page tables"
                     : "memory from malloc(), by page tables of its own",
                 "the GPU does not read memory from malloc()"),
      capability("duplex", facts.copy_engines > 1, engines + " copy engines: both ways at once",
                 engines + " copy engine: one way at a time"),
      link_of(facts, link),
      capability("counters", !no_counters, "page faults and moves by cause, by CUPTI",
                 no_counters.value_or("")),
  };
}

void expect_far_room(Bytes size, const std::string& deed) {
  constexpr Bytes kRamMargin = 1_GiB;  // the RAM that far memory leaves to other uses
  expect_available(size + kRamMargin, deed, kFarAdvice);
}

const ManagedOptions& checked(const ManagedOptions& options, const CudaFacts& facts) {
  if (facts.is_integrated) {
    throw Error{"the memory of " + facts.name +
                " is the host's RAM, where moving pages frees nothing; keep all near (--memory "
                "resident), or copy to a file (--memory copy --far file:PATH)"};
  }
  if (!facts.has_concurrent_managed_access) {
    throw Error{"unified memory cannot be moved by hints on " + facts.name +
                " here (concurrentManagedAccess is 0, as on WSL and Windows); use --memory copy"};
  }
  if (!options.far.file.empty()) {
    throw Error{
        "unified memory of a GPU has its far memory in RAM; leave out --far file, or use "
        "--memory copy"};
  }
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
  if (const Bytes used = options.far.used.value_or(Bytes{}); used > Bytes{}) {
    expect_far_room(
        used, "put " + to_string(used) + " of unified memory, which the plan moves far, in RAM");
  }
  return options;
}

const CopyOptions& checked(const CopyOptions& options, const CudaFacts& facts) {
  if (facts.is_integrated && options.far.file.empty()) {
    throw Error{"the memory of " + facts.name +
                " is the host's RAM, so that copies in RAM free nothing; use --far file:PATH, or "
                "--memory resident"};
  }
  expect_own_link(options.link);
  return options;
}

}  // namespace spillway::um
