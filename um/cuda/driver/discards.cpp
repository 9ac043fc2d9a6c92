#include "um/cuda/driver/discards.h"

#include <cuda_runtime_api.h>

namespace spillway::um {
namespace {

constexpr int kFirstWithDiscards = 13000;

void* find_in_driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &function, kFirstWithDiscards,
                                                              cudaEnableDefault, &found);
  const bool is_there = status == cudaSuccess && found == cudaDriverEntryPointSuccess;
#else  // this form knows no name newer than itself, but where to ask for one
  using Finder =
      CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  void* finder = nullptr;
  const cudaError_t status =
      cudaGetDriverEntryPoint("cuGetProcAddress", &finder, cudaEnableDefault, &found);
  const bool is_there = status == cudaSuccess && found == cudaDriverEntryPointSuccess &&
                        reinterpret_cast<Finder>(finder)(name, &function, kFirstWithDiscards, 0,
                                                         nullptr) == CUDA_SUCCESS;
#endif
  if (status != cudaSuccess) (void)cudaGetLastError();
  return is_there ? function : nullptr;
}

}  // namespace

// An older driver may have the names with other parameters.
Discards find_discards(int driver_version) {
  if (driver_version < kFirstWithDiscards) return {};
  return {.discard_and_prefetch = reinterpret_cast<Discards::DiscardAndPrefetch>(
              find_in_driver("cuMemDiscardAndPrefetchBatchAsync")),
          .discard = reinterpret_cast<Discards::Discard>(find_in_driver("cuMemDiscardBatchAsync"))};
}

}  // namespace spillway::um
