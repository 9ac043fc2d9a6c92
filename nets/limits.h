#pragma once

#include <cstddef>

namespace spillway::nets {

/// The largest sizes that flags and the names of networks may ask for, and files say: larger ones
/// are mistakes, and what is computed from these fits into 64 bits.

/// Channels, features, classes, and tokens of a vocabulary.
inline constexpr std::size_t kLargestWidth = 1U << 20U;
/// A side of an image, a kernel, a stride or a padding.
inline constexpr std::size_t kLargestSide = 1U << 14U;
/// Tokens of a text.
inline constexpr std::size_t kLongestSequence = 1U << 20U;
/// Layers of a network.
inline constexpr std::size_t kMaxLayers = 100'000;

}  // namespace spillway::nets
