#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

namespace spillway::cuda {

/// 16 bytes of a tensor, which a thread moves at once: 4 floats or 8 bfloat16. `T` is the element.
/// A pixel's padded channels are a whole number of packs.
template <class T>
struct Pack {
  static constexpr int kLanes = 16 / sizeof(T);
  float lanes[kLanes];
};

/// Loads pack `i` of a tensor, as floats.
__device__ inline Pack<float> load(const float* tensor, std::size_t i) {
  const float4 raw = reinterpret_cast<const float4*>(tensor)[i];
  return {{raw.x, raw.y, raw.z, raw.w}};
}
__device__ inline Pack<__nv_bfloat16> load(const __nv_bfloat16* tensor, std::size_t i) {
  const uint4 raw = reinterpret_cast<const uint4*>(tensor)[i];
  const std::uint32_t words[] = {raw.x, raw.y, raw.z, raw.w};
  Pack<__nv_bfloat16> pack;
#pragma unroll
  for (int w = 0; w < 4; ++w) {  // a bfloat16 is the upper half of a float
    pack.lanes[2 * w] = __uint_as_float(words[w] << 16U);
    pack.lanes[2 * w + 1] = __uint_as_float(words[w] & 0xFFFF0000U);
  }
  return pack;
}

/// Stores pack `i`, rounded to the tensor's elements: to nearest, ties to even.
__device__ inline void store(float* tensor, std::size_t i, const Pack<float>& pack) {
  reinterpret_cast<float4*>(tensor)[i] =
      make_float4(pack.lanes[0], pack.lanes[1], pack.lanes[2], pack.lanes[3]);
}
__device__ inline void store(__nv_bfloat16* tensor, std::size_t i,
                             const Pack<__nv_bfloat16>& pack) {
  std::uint32_t words[4];
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const std::uint32_t low = __bfloat16_as_ushort(__float2bfloat16_rn(pack.lanes[2 * w]));
    const std::uint32_t high = __bfloat16_as_ushort(__float2bfloat16_rn(pack.lanes[2 * w + 1]));
    words[w] = low | high << 16U;
  }
  reinterpret_cast<uint4*>(tensor)[i] = make_uint4(words[0], words[1], words[2], words[3]);
}

/// Load and store one element.
__device__ inline float load_one(const float* tensor, std::size_t i) { return tensor[i]; }
__device__ inline float load_one(const __nv_bfloat16* tensor, std::size_t i) {
  return __bfloat162float(tensor[i]);
}
__device__ inline void store_one(float* tensor, std::size_t i, float value) { tensor[i] = value; }
__device__ inline void store_one(__nv_bfloat16* tensor, std::size_t i, float value) {
  tensor[i] = __float2bfloat16_rn(value);
}
/// Returns `value` as it is read back after storing it.
template <class T>
__device__ inline float as_stored(float value) {
  T element;
  store_one(&element, 0, value);
  return load_one(&element, 0);
}

}  // namespace spillway::cuda
