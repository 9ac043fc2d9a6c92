#pragma once

#include <cuda_runtime.h>

namespace spillway::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xFFFFFFFF;

/// The sum of all lanes' numbers. Each lane gets the same bits, since a + b = b + a.
template <class Number>
__device__ Number warp_sum(Number number) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    number += __shfl_xor_sync(kAllLanes, number, distance);
  }
  return number;
}

/// The largest of all lanes' numbers, NaNs left out.
__device__ inline float warp_max(float number) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    number = fmaxf(number, __shfl_xor_sync(kAllLanes, number, distance));
  }
  return number;
}

}  // namespace spillway::cuda
