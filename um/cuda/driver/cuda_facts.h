#pragma once

#include <string>

#include "um/bytes.h"

namespace spillway::um {

/// Properties reported by a CUDA device, its driver and its runtime.
struct CudaFacts {
  std::string name;  ///< "NVIDIA H200"
  int ordinal = 0;
  int driver_version = 0;      ///< newest CUDA version of the driver: 13000 is 13.0
  int runtime_version = 0;     ///< CUDA version that this program was built with
  int compute_capability = 0;  ///< 90 is 9.0
  Bytes memory;
  int copy_engines = 0;
  bool has_concurrent_managed_access = false;  ///< pages migrate and can be prefetched
  bool has_pageable_access = false;            ///< the GPU can also access memory from malloc()
  bool uses_host_page_tables = false;          ///< and does so through the host's page tables
  bool is_integrated = false;                  ///< its memory is the host's RAM
  bool has_discard = false;                    ///< the driver has discard and discard-and-prefetch
  std::string pci_bus;                         ///< "0000:1b:00.0"; slices of a GPU (MIG) share it
  std::string uuid;                            ///< "GPU-6a0f...", of a slice its own; "" if unknown
};

/// Returns whether near and far memory differ but are one coherent address space, with a link that
/// is faster than PCI Express: GH200 and GB200.
[[nodiscard]] inline bool has_coherent_link(const CudaFacts& facts) {
  return facts.uses_host_page_tables && !facts.is_integrated;
}

/// Returns whether pages of unified memory move between near and far memory by hints.
[[nodiscard]] inline bool moves_by_hints(const CudaFacts& facts) {
  return facts.has_concurrent_managed_access && !facts.is_integrated;
}

/// Returns the properties of device `ordinal` except `has_discard` and `uuid`, which depend on the
/// driver's entry points. Throws: CudaError.
[[nodiscard]] CudaFacts read_facts(int ordinal);

/// "13.0"
[[nodiscard]] inline std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace spillway::um
