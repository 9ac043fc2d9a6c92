#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <algorithm>
#include <cstddef>

#include "src/ops/tensor.h"
#include "um/bytes.h"

namespace spillway::cuda {

class AttentionEngines;
class ConvolutionEngines;
class StepNumbers;

/// What kernels are made for. All that it points to outlives all kernels.
struct Machine {
  cudaStream_t stream = nullptr;  ///< where kernels enqueue their work
  cudnnHandle_t cudnn = nullptr;
  cublasLtHandle_t cublas = nullptr;
  Precision precision = Precision::kFp32;
  bool deterministic = false;             ///< only engines that give the same bits each time
  um::Bytes max_workspace;                ///< algorithms that need more are not offered
  ConvolutionEngines* engines = nullptr;  ///< what cuDNN offers for `precision`
  AttentionEngines* attention = nullptr;  ///< null: attention is of our kernels alone
  StepNumbers* numbers = nullptr;         ///< what differs from step to step
};

/// How activations and gradients lie in memory: (N, H, W, C), channels padded with zeros to a
/// multiple of 8, so that a pixel begins at a multiple of 16 bytes and tensor cores take it. The
/// elements are floats, with Precision::kBf16 bfloat16. Sequences, whose tokens are pixels of one
/// column, lie alike. The numbers of tokens are floats in each precision, densely.
class Layout {
 public:
  /// What channels are padded to a multiple of.
  static constexpr std::size_t kChannelBlock = 8;

  explicit constexpr Layout(Precision precision) : precision_{precision} {}

  [[nodiscard]] constexpr bool is_bf16() const { return precision_ == Precision::kBf16; }
  [[nodiscard]] constexpr um::Bytes element_bytes() const { return um::Bytes{is_bf16() ? 2U : 4U}; }

  [[nodiscard]] static constexpr std::size_t padded(std::size_t channels) {
    return (channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock;
  }
  /// The image with its padding.
  [[nodiscard]] static constexpr nets::Shape padded(const nets::Shape& image) {
    if (image.form == nets::Form::kTokens) return image;
    return {.channels = padded(image.channels),
            .height = image.height,
            .width = image.width,
            .form = image.form};
  }
  /// Elements of a tensor, padding included.
  [[nodiscard]] static constexpr std::size_t elements(const TensorShape& shape) {
    return shape.batch * padded(shape.image).elements();
  }
  [[nodiscard]] constexpr um::Bytes tensor_bytes(const TensorShape& shape) const {
    if (shape.image.form == nets::Form::kTokens) return float_bytes(shape.elements());
    return elements(shape) * element_bytes();
  }
  /// Where an element lies within its image, in elements; `channel` may be a padding channel.
  [[nodiscard]] static constexpr std::size_t index(const nets::Shape& image, std::size_t channel,
                                                   std::size_t row, std::size_t column) {
    return (row * image.width + column) * padded(image).channels + channel;
  }

  /// Distances between neighbours in each dimension, in elements.
  struct Strides {
    std::size_t batch;
    std::size_t channel;
    std::size_t row;
    std::size_t column;
    friend constexpr bool operator==(const Strides&, const Strides&) = default;
  };
  [[nodiscard]] static constexpr Strides strides(const TensorShape& shape) {
    const nets::Shape image = padded(shape.image);
    return {.batch = image.elements(),
            .channel = 1,
            .row = image.width * image.channels,
            .column = image.channels};
  }

 private:
  Precision precision_;
};

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
