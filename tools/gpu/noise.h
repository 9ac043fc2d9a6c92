#pragma once

#include <cstdint>
#include <cstring>

#include "um/range.h"

namespace spillway::gpu {

/// Overwrites `range`, whose size is a multiple of eight, with bytes that do not repeat: what is
/// moved in a measurement must not be zeros.
inline void fill_with_noise(um::Range range) {
  std::uint64_t state = 0x9E3779B97F4A7C15U;
  for (std::size_t i = 0; i + sizeof state <= range.size(); i += sizeof state) {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    std::memcpy(range.data() + i, &state, sizeof state);
  }
}

}  // namespace spillway::gpu
