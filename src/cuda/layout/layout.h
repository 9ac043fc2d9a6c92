#pragma once

#include <cstddef>

#include "src/cuda/layout/kernel_context.h"
#include "src/ops/tensor.h"
#include "um/bytes.h"

namespace spillway::cuda {

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

}  // namespace spillway::cuda
