#pragma once

// Emulates CUDA's language in C++ on the CPU. Included first in every kernel source, as nvcc does
// with its own header.

#include <cuda_runtime_api.h>
#include <math.h>  // isnan() without std::

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>

#include "tests/src/cuda/processor/grid_run.h"

#define __host__
#define __device__
#define __global__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ thread_local  // blocks of threads follow each other on one thread of the process

inline const uint3& threadIdx = spillway::processor::place.thread;
inline const uint3& blockIdx = spillway::processor::place.block;
inline const dim3& blockDim = spillway::processor::place.block_size;
inline const dim3& gridDim = spillway::processor::place.grid_size;

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline std::size_t min(std::size_t a, std::size_t b) { return b < a ? b : a; }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
// Each rounds to nearest, since these files are compiled without fused multiply-adds.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }

inline void __syncthreads(spillway::um::Caller where = spillway::um::Caller::here()) {
  spillway::processor::wait_for_block(0, where);
}
inline int __syncthreads_count(int predicate,
                               spillway::um::Caller where = spillway::um::Caller::here()) {
  return spillway::processor::wait_for_block(predicate != 0 ? 1 : 0, where);
}
inline void __syncwarp(unsigned lanes = 0xFFFFFFFF,
                       spillway::um::Caller where = spillway::um::Caller::here()) {
  spillway::processor::wait_for_warp(lanes, where);
}
template <class T>
T __shfl_xor_sync(unsigned lanes, T value, unsigned distance,
                  spillway::um::Caller where = spillway::um::Caller::here()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const std::uint64_t other =
      spillway::processor::exchange(lanes, std::bit_cast<Bits>(value), distance, where);
  return std::bit_cast<T>(static_cast<Bits>(other));
}

template <class T>
T __shfl_sync(unsigned lanes, T value, unsigned source,
              spillway::um::Caller where = spillway::um::Caller::here()) {
  return __shfl_xor_sync(lanes, value, (threadIdx.x % 32U) ^ source, where);
}

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
};

// Rejects more shared memory than a launch may have by default.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  constexpr std::size_t kLargestSharedBytes = 48U << 10U;  // without cudaFuncSetAttribute()
  constexpr std::size_t kLargestParameters = 4096;
  static_assert((sizeof(Parameters) + ... + 0) <= kLargestParameters);
  if (config->dynamicSmemBytes > kLargestSharedBytes) return cudaErrorInvalidValue;
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> values;
  };
  const auto call = std::shared_ptr<const Call>{new Call{kernel, {arguments...}}};
  return static_cast<cudaError_t>(
      spillway::processor::launch(config->stream,
                                  {.blocks = config->gridDim,
                                   .threads = config->blockDim,
                                   .shared_bytes = config->dynamicSmemBytes,
                                   .kernel = reinterpret_cast<const void*>(kernel),
                                   .arguments = call,
                                   .argument_bytes = sizeof(Call)},
                                  [call = call.get()] { std::apply(call->kernel, call->values); }));
}
