#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway {

/// How many values a byte has.
inline constexpr std::size_t kByteValues = 256;

/// Writes the numbers that the bytes of an image, (C, H, W), stand for. `numbers` has those of each
/// value of each channel, (C, kByteValues). Requires: `image` has a number for each byte.
inline void look_up(std::span<const std::uint8_t> bytes, std::span<const float> numbers,
                    std::span<float> image) {
  const std::size_t plane = bytes.size() / (numbers.size() / kByteValues);
  for (std::size_t begin = 0; begin < bytes.size(); begin += plane) {
    const float* const of_channel = &numbers[begin / plane * kByteValues];
    for (std::size_t i = begin; i < begin + plane; ++i) image[i] = of_channel[bytes[i]];
  }
}

}  // namespace spillway
