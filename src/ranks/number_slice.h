#pragma once

#include <cstddef>

namespace spillway {

/// Numbers [first, first + count) of a buffer.
struct NumberSlice {
  std::size_t first = 0;
  std::size_t count = 0;

  friend bool operator==(const NumberSlice&, const NumberSlice&) = default;
};

/// What of `n` numbers a rank owns: about n / R, in order of ranks. Each slice begins at a multiple
/// of 16 numbers; where n is small, some may be empty. Requires: `rank` is less than `ranks`.
[[nodiscard]] NumberSlice slice_of_rank(std::size_t rank, std::size_t ranks, std::size_t n);

/// At least as many numbers as any rank's slice of n has, a multiple of 16.
[[nodiscard]] std::size_t largest_slice(std::size_t ranks, std::size_t n);

}  // namespace spillway
