#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "um/error.h"
#include "um/host/far/link.h"

namespace spillway::um {
namespace {

// Sizes on both sides of the limit for streaming (64 KiB), with and without a rest; starts that are
// and are not at a cache line. Bytes around the target must stay.
TEST(CopyBytes, CopiesExactlyTheBytesAskedFor) {
  std::mt19937 random{1};
  std::vector<std::byte> source(300 << 10);
  for (std::byte& b : source) b = static_cast<std::byte>(random() % 255 + 1);
  alignas(64) static std::array<std::byte, 300 << 10> target;
  for (const std::size_t size : {0UL, 1UL, 4096UL, 65535UL, 65536UL, 65600UL, 65601UL, 262144UL}) {
    for (const std::size_t start : {64UL, 65UL}) {
      target.fill(std::byte{0});
      copy_bytes(std::span{target}.subspan(start, size), std::span{source}.first(size));
      EXPECT_EQ(target[start - 1], std::byte{0});
      EXPECT_TRUE(std::equal(source.begin(), source.begin() + static_cast<long>(size),
                             target.begin() + static_cast<long>(start)));
      EXPECT_EQ(target.at(start + size), std::byte{0});
    }
  }
}

TEST(CopyBytes, RefusesRangesOfDifferentSize) {
  std::array<std::byte, 2> two{};
  std::array<std::byte, 1> one{};
  EXPECT_THROW(copy_bytes(two, one), ContractError);
}

}  // namespace
}  // namespace spillway::um
