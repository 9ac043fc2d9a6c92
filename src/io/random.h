#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace spillway {

/// A bijection on 64 bits with well mixed output: the finalizer of SplitMix64 (Steele, Lea and
/// Flood, 2014).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// A sequence of random numbers that depends only on its key, on every machine. (The standard
/// library's distributions differ.)
class Random {
 public:
  constexpr Random(std::initializer_list<std::uint64_t> key) {
    for (const std::uint64_t part : key) state_ = mix(state_ + kGolden + mix(part + kGolden));
  }

  constexpr std::uint64_t next() { return mix(state_ += kGolden); }

  /// Draws a number, uniform in [0, 1).
  constexpr float uniform() {
    return static_cast<float>(next() >> 40) * (1.0F / static_cast<float>(1U << 24));
  }
  /// Draws a number, uniform in [from, to), up to rounding.
  constexpr float uniform(float from, float to) { return from + (to - from) * uniform(); }

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;
  std::uint64_t state_ = 0;
};

/// A random permutation of 0 ... size-1 that needs no memory: a Feistel network over the next even
/// number of bits, applied until the result is below `size` (Black and Rogaway, 2002).
class Permutation {
 public:
  /// Requires: size >= 1.
  Permutation(std::size_t size, std::uint64_t seed, std::uint64_t epoch);

  /// Returns the new place of `i`. Requires: i < size.
  [[nodiscard]] std::size_t operator()(std::size_t i) const;

 private:
  [[nodiscard]] std::uint64_t encipher(std::uint64_t x) const;

  std::size_t size_;
  unsigned half_bits_ = 1;
  std::array<std::uint64_t, 6> keys_{};
};

/// Draws a number from Beta(alpha, alpha), between 0 and 1, with the same bits on every machine.
/// Requires: 0 < alpha, not infinite.
[[nodiscard]] double drawn_beta(double alpha, Random& random);

}  // namespace spillway
