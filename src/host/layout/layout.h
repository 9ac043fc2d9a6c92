#pragma once

#include <cstddef>

#include "src/host/layout/onednn.h"
#include "src/ops/tensor.h"

namespace spillway::host {

/// How activations lie in memory: (N, C / b, H, W, b) with channels padded with zeros to a multiple
/// of b, the floats of one vector register (oneDNN's nChw16c and nChw8c), since oneDNN's fast
/// kernels take nothing else. Images (three channels, and with AVX-512 also one or two) lie as
/// dense (N, C, H, W). Sequences lie as (N, tokens, C), C padded likewise, so that tokens are rows
/// of a matrix; the numbers of tokens lie densely.
class Layout {
 public:
  /// Requires: `block` is 16, 8 or 1; 1 leaves all tensors dense.
  explicit Layout(std::size_t block);
  /// What oneDNN's kernels for this machine's instruction set want.
  [[nodiscard]] static Layout of_this_machine();

  [[nodiscard]] std::size_t block() const { return block_; }
  [[nodiscard]] bool is_dense(std::size_t channels) const {
    return block_ <= 1 || channels == 3 || (block_ == 16 && channels < 3);
  }
  [[nodiscard]] std::size_t padded(std::size_t channels) const {
    return is_dense(channels) ? channels : (channels + block_ - 1) / block_ * block_;
  }
  /// Channels that lie next to each other: b, all of a token, or 1 in a dense tensor.
  [[nodiscard]] std::size_t lanes(const nets::Shape& image) const {
    if (image.form == nets::Form::kSequence) return padded(image.channels);
    return image.form == nets::Form::kTokens || is_dense(image.channels) ? 1 : block_;
  }
  /// The image with its padding.
  [[nodiscard]] nets::Shape padded(const nets::Shape& image) const {
    if (image.form == nets::Form::kTokens) return image;
    return {.channels = padded(image.channels),
            .height = image.height,
            .width = image.width,
            .form = image.form};
  }
  /// Floats of a tensor, padding included.
  [[nodiscard]] std::size_t floats(const TensorShape& shape) const {
    return shape.batch * padded(shape.image).elements();
  }
  /// Where an element lies within its image, in floats; `channel` may be a padding channel.
  [[nodiscard]] std::size_t index(const nets::Shape& image, std::size_t channel, std::size_t row,
                                  std::size_t column) const {
    const std::size_t b = lanes(image);
    return ((channel / b * image.height + row) * image.width + column) * b + channel % b;
  }
  /// The tensor for oneDNN; padding channels are channels like the others.
  [[nodiscard]] Desc desc(const TensorShape& shape) const;
  /// The same memory, in which padding channels are oneDNN's own padding: it leaves them out and
  /// keeps them zero, even those of what it only reads. Most of its fast kernels do not take it.
  [[nodiscard]] Desc unpadded_desc(const TensorShape& shape) const;

 private:
  [[nodiscard]] dnnl::memory::format_tag tag(std::size_t channels) const;

  std::size_t block_;
};

}  // namespace spillway::host
