#pragma once

#include <cstdint>
#include <initializer_list>

namespace spillway {

/// A bijection on 64 bits that leaves no pattern: the finalizer of SplitMix64 (Steele, Lea and
/// Flood, 2014).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// A sequence of random numbers that is a function of its key alone, on every machine. (The
/// standard library's distributions are not.)
class Random {
 public:
  constexpr Random(std::initializer_list<std::uint64_t> key) {
    for (const std::uint64_t part : key) state_ = mix(state_ + kGolden + mix(part + kGolden));
  }

  constexpr std::uint64_t next() { return mix(state_ += kGolden); }

  /// Uniform in [0, 1).
  constexpr float uniform() {
    return static_cast<float>(next() >> 40) * (1.0F / static_cast<float>(1U << 24));
  }
  /// Uniform in [from, to), up to rounding.
  constexpr float uniform(float from, float to) { return from + (to - from) * uniform(); }

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15U;
  std::uint64_t state_ = 0;
};

}  // namespace spillway
