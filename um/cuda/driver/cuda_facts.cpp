#include "um/cuda/driver/cuda_facts.h"

#include <cuda_runtime_api.h>

#include <array>

#include "um/cuda/driver/check.h"

namespace spillway::um {
namespace {

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, ordinal));
  return value;
}

}  // namespace

CudaFacts read_facts(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal));
  CudaFacts facts;
  facts.name = properties.name;
  facts.ordinal = ordinal;
  check(cudaDriverGetVersion(&facts.driver_version));
  check(cudaRuntimeGetVersion(&facts.runtime_version));
  facts.compute_capability = properties.major * 10 + properties.minor;
  facts.memory = Bytes{properties.totalGlobalMem};
  facts.copy_engines = attribute(cudaDevAttrAsyncEngineCount, ordinal);
  facts.has_concurrent_managed_access = attribute(cudaDevAttrConcurrentManagedAccess, ordinal) != 0;
  facts.has_pageable_access = attribute(cudaDevAttrPageableMemoryAccess, ordinal) != 0;
  facts.uses_host_page_tables =
      attribute(cudaDevAttrPageableMemoryAccessUsesHostPageTables, ordinal) != 0;
  facts.is_integrated = attribute(cudaDevAttrIntegrated, ordinal) != 0;
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), ordinal));
  facts.pci_bus = bus.data();
  return facts;
}

}  // namespace spillway::um
