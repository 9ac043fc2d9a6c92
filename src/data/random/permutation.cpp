#include "src/data/random/permutation.h"

#include <bit>

#include "src/data/random/random.h"
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

}  // namespace spillway
