#pragma once

#include <string>

#include "um/bytes.h"

namespace spillway::um {

/// What a CUDA device, its driver and its runtime say of themselves.
struct CudaFacts {
  std::string name;  ///< "NVIDIA H200"
  int ordinal = 0;
  int driver_version = 0;      ///< newest CUDA of the driver: 13000 is 13.0
  int runtime_version = 0;     ///< CUDA that this program was built with
  int compute_capability = 0;  ///< 90 is 9.0
  Bytes memory;
  int copy_engines = 0;
  bool has_concurrent_managed_access = false;  ///< pages migrate and may be prefetched
  bool has_pageable_access = false;            ///< the GPU reads memory from malloc() as well
  bool uses_host_page_tables = false;          ///< and finds it as the processor does
  bool has_discard = false;  ///< the driver has discard, and discard and prefetch in one
  std::string pci_bus;       ///< "0000:1b:00.0"
};

/// Of device number `ordinal`, but for `has_discard`, which only a driver's functions tell.
/// Throws: CudaError.
[[nodiscard]] CudaFacts read_facts(int ordinal);

/// "13.0"
[[nodiscard]] inline std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace spillway::um
