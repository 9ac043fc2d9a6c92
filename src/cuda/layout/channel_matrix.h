#pragma once

#include <algorithm>
#include <cstddef>

#include "src/cuda/layout/layout.h"
#include "src/ops/tensor.h"

namespace spillway::cuda {

/// A tensor as a matrix: a row for each pixel of the batch, a column for each padded channel.
struct ChannelMatrix {
  std::size_t rows;
  std::size_t channels;  ///< a multiple of Layout::kChannelBlock

  [[nodiscard]] constexpr std::size_t groups() const { return channels / Layout::kChannelBlock; }
};

[[nodiscard]] constexpr ChannelMatrix matrix_of(const TensorShape& shape) {
  const nets::Shape image = Layout::padded(shape.image);
  return {.rows = shape.batch * image.height * image.width, .channels = image.channels};
}

/// How the threads of a kernel share a matrix. A thread has one group of 8 channels and goes down
/// some of the rows, so that what is the same for a whole column stays in its registers, and
/// neighbours read neighbouring memory. The shape depends on the matrix alone: the same sums are
/// added in the same order on each device.
struct ChannelTiling {
  unsigned across;             ///< threads of a block in a row, each with a group
  unsigned down;               ///< threads of a block in a column
  unsigned columns;            ///< blocks that lie in a row
  unsigned chunks;             ///< blocks that lie in a column
  std::size_t rows_per_chunk;  ///< of all chunks but the last
};

/// Threads of a block are at most this many, in a row of at most kTileAcross.
inline constexpr unsigned kTileThreads = 256;
inline constexpr unsigned kTileAcross = 32;

/// Requires: the matrix has a row and a column.
[[nodiscard]] constexpr ChannelTiling tiling_of(const ChannelMatrix& matrix) {
  constexpr std::size_t kBlocks = 1024;  // fill the largest device about once
  constexpr std::size_t kRowsEach = 4;   // of a thread, at least
  const std::size_t across = std::min<std::size_t>(matrix.groups(), kTileAcross);
  const std::size_t down = kTileThreads / across;
  const std::size_t columns = (matrix.groups() + across - 1) / across;
  const std::size_t useful = (matrix.rows + down * kRowsEach - 1) / (down * kRowsEach);
  const std::size_t wanted = std::clamp<std::size_t>(kBlocks / columns, 1, useful);
  const std::size_t rows_per_chunk = (matrix.rows + wanted - 1) / wanted;
  return {.across = static_cast<unsigned>(across),
          .down = static_cast<unsigned>(down),
          .columns = static_cast<unsigned>(columns),
          .chunks = static_cast<unsigned>((matrix.rows + rows_per_chunk - 1) / rows_per_chunk),
          .rows_per_chunk = rows_per_chunk};
}

}  // namespace spillway::cuda
