#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/cuda/layout/layout.cuh"
#include "src/cuda/layout/layout.h"
#include "src/ops/backend.h"
#include "um/cuda/driver/check.h"

namespace spillway::cuda {

/// The grid of a launch.
struct Grid {
  dim3 blocks;
  dim3 threads;                  ///< per block
  std::size_t shared_bytes = 0;  ///< per block, in addition to what the kernel declares
};

/// Enqueues `kernel(arguments...)`. All launches of this backend go through here.
template <class... Parameters, class... Arguments>
void enqueue(cudaStream_t stream, const Grid& grid, void (*kernel)(Parameters...),
             const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  um::check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

/// Returns the shared memory requested by Grid::shared_bytes.
__device__ inline float* shared_floats() {
  extern __shared__ float launch_floats[];
  return launch_floats;
}

/// Threads per block of kernels that iterate over elements.
constexpr unsigned kThreads = 256;
/// Largest number of blocks per launch: several times what fills the largest device.
constexpr std::size_t kMaxBlocks = 1U << 15U;

/// A thread's first item and the distance to its next one: `for (i = first_item(); i < count; i +=
/// item_stride())`.
__device__ inline std::size_t first_item() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::size_t item_stride() {
  return static_cast<std::size_t>(gridDim.x) * blockDim.x;
}

/// Enqueues `kernel(arguments...)` with a thread per item, but at most kMaxBlocks blocks. A no-op
/// for zero items.
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, std::size_t items, void (*kernel)(Parameters...),
            Arguments... arguments) {
  if (items == 0) return;
  const std::size_t blocks = std::min((items + kThreads - 1) / kThreads, kMaxBlocks);
  const Grid grid{.blocks = dim3{static_cast<unsigned>(blocks)}, .threads = dim3{kThreads}};
  enqueue(stream, grid, kernel, arguments...);
}

/// Calls visit(T{}) with the element type for `precision`.
template <class Visit>
void with_element(Precision precision, const Visit& visit) {
  if (precision == Precision::kBf16) {
    visit(__nv_bfloat16{});
  } else {
    visit(float{});
  }
}

/// Casts an operand to a tensor of T.
template <class T>
T* tensor(std::byte* operand) {
  return reinterpret_cast<T*>(operand);
}

/// Returns the number of packs in a tensor.
template <class T>
std::size_t pack_count(const TensorShape& shape) {
  return Layout::elements(shape) / Pack<T>::kLanes;
}

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFF;

/// Returns the sum over all lanes. Each lane gets the same bits, since a + b = b + a.
template <class Number>
__device__ Number warp_sum(Number number) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    number += __shfl_xor_sync(kAllLanes, number, distance);
  }
  return number;
}

/// Returns the maximum over all lanes; NaNs are ignored.
__device__ inline float warp_max(float number) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    number = fmaxf(number, __shfl_xor_sync(kAllLanes, number, distance));
  }
  return number;
}

}  // namespace spillway::cuda
