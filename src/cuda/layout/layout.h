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

/// The handles and settings that kernels are made for. Everything that it points to outlives all
/// kernels.
struct Machine {
  cudaStream_t stream = nullptr;  ///< kernels enqueue their work here
  cudnnHandle_t cudnn = nullptr;
  cublasLtHandle_t cublas = nullptr;
  Precision precision = Precision::kFp32;
  bool deterministic = false;             ///< use only engines that give the same bits in each run
  um::Bytes max_workspace;                ///< algorithms with larger workspaces are not offered
  ConvolutionEngines* engines = nullptr;  ///< cuDNN's convolution engines for `precision`
  AttentionEngines* attention = nullptr;  ///< null: only our own attention kernels
  StepNumbers* numbers = nullptr;         ///< values that differ from step to step
};

/// Memory layout of activations and gradients: (N, H, W, C). Channels are padded with zeros to a
/// multiple of 8, so that a pixel is aligned to 16 bytes, as tensor cores require. Elements are
/// floats, or bfloat16 with Precision::kBf16. Sequences have the same layout, with tokens as the
/// pixels of one column. Token numbers are dense floats in every precision.
class Layout {
 public:
  /// Channels are padded to a multiple of this.
  static constexpr std::size_t kChannelBlock = 8;

  explicit constexpr Layout(Precision precision) : precision_{precision} {}

  [[nodiscard]] constexpr bool is_bf16() const { return precision_ == Precision::kBf16; }
  [[nodiscard]] constexpr um::Bytes element_bytes() const { return um::Bytes{is_bf16() ? 2U : 4U}; }

  [[nodiscard]] static constexpr std::size_t padded(std::size_t channels) {
    return (channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock;
  }
  /// Returns the image with padding.
  [[nodiscard]] static constexpr nets::Shape padded(const nets::Shape& image) {
    if (image.form == nets::Form::kTokens) return image;
    return {.channels = padded(image.channels),
            .height = image.height,
            .width = image.width,
            .form = image.form};
  }
  /// Returns the number of elements of a tensor, padding included.
  [[nodiscard]] static constexpr std::size_t elements(const TensorShape& shape) {
    return shape.batch * padded(shape.image).elements();
  }
  [[nodiscard]] constexpr um::Bytes tensor_bytes(const TensorShape& shape) const {
    if (shape.image.form == nets::Form::kTokens) return float_bytes(shape.elements());
    return elements(shape) * element_bytes();
  }
  /// Returns an element's offset within its image, in elements; `channel` may be a padding channel.
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

/// A tensor as a matrix: one row per pixel of the batch, one column per padded channel.
struct ChannelMatrix {
  std::size_t rows;
  std::size_t channels;  ///< a multiple of Layout::kChannelBlock

  [[nodiscard]] constexpr std::size_t groups() const { return channels / Layout::kChannelBlock; }
};

[[nodiscard]] constexpr ChannelMatrix matrix_of(const TensorShape& shape) {
  const nets::Shape image = Layout::padded(shape.image);
  return {.rows = shape.batch * image.height * image.width, .channels = image.channels};
}

/// How a kernel's threads share a matrix. A thread handles one group of 8 channels and some of the
/// rows. Values common to a column stay in its registers, and neighbouring threads read adjacent
/// memory. The tiling depends only on the matrix, so every device adds the same sums in the same
/// order.
struct ChannelTiling {
  unsigned across;             ///< threads per block in x, one group each
  unsigned down;               ///< threads per block in y
  unsigned columns;            ///< blocks in x
  unsigned chunks;             ///< blocks in y
  std::size_t rows_per_chunk;  ///< the last chunk may have fewer
};

/// Most threads per block, at most kTileAcross of them in x.
inline constexpr unsigned kTileThreads = 256;
inline constexpr unsigned kTileAcross = 32;

/// Requires: the matrix has at least one row and one column.
[[nodiscard]] constexpr ChannelTiling tiling_of(const ChannelMatrix& matrix) {
  constexpr std::size_t kBlocks = 1024;  // fill the largest device about once
  constexpr std::size_t kRowsEach = 4;   // least rows per thread
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

/// The tokens of a batch of sequences as rows of a matrix; a plain value that device code can use,
/// too.
struct TokenMatrix {
  std::size_t rows;
  std::size_t tokens;    ///< rows per sequence
  std::size_t channels;  ///< without padding
  std::size_t stride;    ///< elements between rows, padding included

  [[nodiscard]] constexpr std::size_t elements() const { return rows * stride; }
};

[[nodiscard]] constexpr TokenMatrix token_matrix(const TensorShape& x) {
  return {.rows = x.batch * x.image.height,
          .tokens = x.image.height,
          .channels = x.image.channels,
          .stride = Layout::padded(x.image.channels)};
}

}  // namespace spillway::cuda
