#include <gtest/gtest.h>

#include "src/cuda/layout/layout.h"

namespace spillway::cuda {

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const ChannelMatrix& matrix, std::ostream* out) {
  *out << matrix.rows << 'x' << matrix.channels;
}

namespace {

TEST(ChannelMatrix, HasARowForEachPixelAndPaddedChannels) {
  const ChannelMatrix matrix = matrix_of({.batch = 2, .image = {20, 3, 5}});
  EXPECT_EQ(matrix.rows, 30);
  EXPECT_EQ(matrix.channels, 24);
  EXPECT_EQ(matrix.groups(), 3);
}

class Tiling : public testing::TestWithParam<ChannelMatrix> {};

// Counts, per group and row, the threads that tile_place() assigns.
TEST_P(Tiling, GivesEveryGroupOfEveryRowToOneThread) {
  const ChannelMatrix matrix = GetParam();
  const ChannelTiling t = tiling_of(matrix);
  ASSERT_LE(t.across * t.down, kTileThreads);
  std::size_t groups = 0;
  for (std::size_t g = 0; g < std::size_t{t.columns} * t.across; ++g) groups += g < matrix.groups();
  EXPECT_EQ(groups, matrix.groups());
  EXPECT_LT((t.columns - 1) * t.across, matrix.groups()) << "no block without a group";
  std::vector<int> threads_of_row(matrix.rows);
  for (std::size_t chunk = 0; chunk < t.chunks; ++chunk) {
    const std::size_t begin = chunk * t.rows_per_chunk;
    ASSERT_LT(begin, matrix.rows) << "no chunk without a row";
    const std::size_t end = std::min(begin + t.rows_per_chunk, matrix.rows);
    for (std::size_t down = 0; down < t.down; ++down) {
      for (std::size_t row = begin + down; row < end; row += t.down) ++threads_of_row[row];
    }
  }
  for (const int threads : threads_of_row) ASSERT_EQ(threads, 1);
}

TEST_P(Tiling, MakesNoMoreBlocksThanFillADevice) {
  const ChannelTiling t = tiling_of(GetParam());
  EXPECT_LE(t.columns * t.chunks, 1024);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Tiling,
                         testing::Values(ChannelMatrix{1, 8}, ChannelMatrix{7, 8},
                                         ChannelMatrix{1000, 24}, ChannelMatrix{12345, 96},
                                         ChannelMatrix{12544, 2048}, ChannelMatrix{802817, 64},
                                         ChannelMatrix{64, 4096}, ChannelMatrix{3, 264}));

}  // namespace
}  // namespace spillway::cuda
