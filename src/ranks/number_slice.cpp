#include "src/ranks/number_slice.h"

#include <algorithm>

#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kUnit = 16;  // numbers, 64 bytes: slices begin at one

std::size_t units_of(std::size_t n) { return (n + kUnit - 1) / kUnit; }

}  // namespace

NumberSlice slice_of_rank(std::size_t rank, std::size_t ranks, std::size_t n) {
  um::expects(rank < ranks, "a rank that is one of all");
  const std::size_t units = units_of(n);
  const std::size_t first = std::min(n, kUnit * (units * rank / ranks));
  return {first, std::min(n, kUnit * (units * (rank + 1) / ranks)) - first};
}

std::size_t largest_slice(std::size_t ranks, std::size_t n) {
  return (units_of(n) + ranks - 1) / ranks * kUnit;
}

}  // namespace spillway
