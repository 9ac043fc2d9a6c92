#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace spillway {

/// A shuffling of 0 ... size-1 that needs no memory: a Feistel network over the next even number of
/// bits, walked until it lands below `size` (Black and Rogaway, 2002).
class Permutation {
 public:
  /// Requires: size >= 1.
  Permutation(std::size_t size, std::uint64_t seed, std::uint64_t epoch);

  /// Where `i` goes. Requires: i < size.
  [[nodiscard]] std::size_t operator()(std::size_t i) const;

 private:
  [[nodiscard]] std::uint64_t encipher(std::uint64_t x) const;

  std::size_t size_;
  unsigned half_bits_ = 1;
  std::array<std::uint64_t, 6> keys_{};
};

}  // namespace spillway
