#include "src/dropin/block_pieces.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace spillway::dropin {
namespace {

using namespace um;

constexpr PieceSize kSize{.page = 4_KiB, .piece = 8_KiB};

/// Returns the sizes of the pieces that a part of an allocation of `all` bytes overlaps.
std::vector<std::size_t> sizes(std::size_t all, std::size_t begin, std::size_t part) {
  static std::byte memory[64 << 10];
  const Range allocation{memory, all};
  std::vector<std::size_t> result;
  for (const Range& piece : pieces_of(allocation, allocation.subspan(begin, part), kSize)) {
    EXPECT_EQ(static_cast<std::size_t>(piece.data() - memory) % 8192, 0U);
    result.push_back(piece.size());
  }
  return result;
}

TEST(BlockPieces, CoverAnAllocation) {
  EXPECT_EQ(sizes(16384, 0, 16384), (std::vector<std::size_t>{8192, 8192}));
  EXPECT_EQ(sizes(4096, 0, 4096), (std::vector<std::size_t>{4096}));
  EXPECT_EQ(sizes(20480, 0, 20480), (std::vector<std::size_t>{8192, 8192, 4096}));
}

TEST(BlockPieces, LeaveNoRestSmallerThanAPage) {
  EXPECT_EQ(sizes(16384 + 100, 0, 16484), (std::vector<std::size_t>{8192, 8292}));
  EXPECT_EQ(sizes(16384 + 100, 16400, 1), (std::vector<std::size_t>{8292}));
  EXPECT_EQ(sizes(5000, 4999, 1), (std::vector<std::size_t>{5000}));
}

TEST(BlockPieces, AreThoseThatAPartHasBytesOf) {
  EXPECT_EQ(sizes(32768, 8191, 2).size(), 2U);
  EXPECT_EQ(sizes(32768, 8192, 8192).size(), 1U);
  EXPECT_TRUE(sizes(32768, 8192, 0).empty());
}

TEST(BlockPieces, AreNoneOfAnAllocationSmallerThanAPage) {
  EXPECT_TRUE(sizes(4095, 0, 4095).empty());
}

TEST(BlockPieces, AreASixtyFourthOfNearMemory) {
  EXPECT_EQ(choose_pieces(1_GiB, 2_MiB).piece, 16_MiB);
  EXPECT_EQ(choose_pieces(40_GiB, 2_MiB).piece, 16_MiB);
  EXPECT_EQ(choose_pieces(300_MiB, 2_MiB).piece, 4_MiB);
  EXPECT_EQ(choose_pieces(64_MiB, 2_MiB).piece, 2_MiB);
}

}  // namespace
}  // namespace spillway::dropin
