#include "src/io/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "um/error.h"

namespace spillway {

Permutation::Permutation(std::size_t size, std::uint64_t seed, std::uint64_t epoch) : size_{size} {
  um::expects(size >= 1, "something to permute");
  const auto bits = static_cast<unsigned>(std::bit_width(size - 1));
  if (bits > 2) half_bits_ = (bits + 1) / 2;
  Random random{seed, epoch};
  for (std::uint64_t& key : keys_) key = random.next();
}

std::size_t Permutation::operator()(std::size_t i) const {
  um::expects(i < size_, "a number that is permuted");
  std::uint64_t x = i;
  do {
    x = encipher(x);
  } while (x >= size_);
  return x;
}

std::uint64_t Permutation::encipher(std::uint64_t x) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = x >> half_bits_;
  std::uint64_t right = x & mask;
  for (const std::uint64_t key : keys_) {
    const std::uint64_t next = left ^ (mix(right + key) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

namespace {

// Draws a number, uniform in (0, 1).
double uniform_inside(Random& random) {
  return (static_cast<double>(random.next() >> 12U) + 0.5) * 0x1p-52;
}

// Returns x to the power of p. Uses only products and square roots: unlike logarithms, they have
// the same bits on all machines. Requires: 0 < x < 1, 0 <= p.
double power(double x, double p) {
  constexpr double kLargest = 1e15;  // here the power is 0, unless x is close to 1
  constexpr int kFractionBits = 40;
  p = std::min(p, kLargest);
  auto whole = static_cast<std::uint64_t>(p);
  double rest = p - static_cast<double>(whole);
  double result = 1;
  for (double square = x; whole > 0; whole >>= 1U, square *= square) {
    if ((whole & 1U) != 0) result *= square;
  }
  double root = x;
  for (int i = 0; i < kFractionBits && rest > 0; ++i) {
    root = std::sqrt(root);
    rest *= 2;
    if (rest < 1) continue;
    result *= root;
    rest -= 1;
  }
  return result;
}

// Joehnk (1964): U^(1/alpha) / (U^(1/alpha) + V^(1/alpha)) if the sum is at most 1. That holds in
// at least half of the tries.
double drawn_by_joehnk(double alpha, Random& random) {
  const double exponent = 1 / alpha;
  for (;;) {
    const double u = uniform_inside(random);
    const double v = uniform_inside(random);
    if (power(u, exponent) + power(v, exponent) > 1) continue;
    // Both powers may underflow, but their ratio as a power of the quotient does not.
    if (u == v) return 0.5;
    const double ratio = power(std::min(u, v) / std::max(u, v), exponent);
    return u < v ? ratio / (1 + ratio) : 1 / (1 + ratio);
  }
}

// Ulrich (1984): (1 + sqrt(1 - s^(2 / (2 alpha - 1))) cos) / 2. Draws a point of the unit disc with
// a uniform squared radius s and that cosine. Its coordinates are odd numbers, so that s is exact
// and not 0.
double drawn_by_ulrich(double alpha, Random& random) {
  constexpr std::int64_t kRadius = std::int64_t{1} << 24U;
  const auto coordinate = [&] {
    return 2 * static_cast<std::int64_t>(random.next() >> 40U) + 1 - kRadius;
  };
  for (;;) {
    const std::int64_t x = coordinate();
    const std::int64_t y = coordinate();
    const std::int64_t squares = x * x + y * y;
    if (squares >= kRadius * kRadius) continue;
    const double s = static_cast<double>(squares) * 0x1p-48;
    const double cosine = static_cast<double>(x) * 0x1p-24 / std::sqrt(s);
    const double half = std::sqrt(1 - power(s, 2 / (2 * alpha - 1))) * cosine / 2;
    return std::clamp(0.5 + half, 0.0, 1.0);
  }
}

}  // namespace

double drawn_beta(double alpha, Random& random) {
  um::expects(0 < alpha && std::isfinite(alpha), "a parameter of a beta distribution");
  return alpha <= 1 ? drawn_by_joehnk(alpha, random) : drawn_by_ulrich(alpha, random);
}

}  // namespace spillway
