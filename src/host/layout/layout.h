#pragma once

#include <cstddef>
#include <initializer_list>

#include "src/host/layout/onednn.h"
#include "src/ops/tensor.h"
#include "um/bytes.h"

namespace spillway::host {

/// How activations lie in memory: (N, C / b, H, W, b) with channels padded with zeros to a multiple
/// of b, the floats of one vector register (oneDNN's nChw16c and nChw8c), since oneDNN's fast
/// kernels take nothing else. Images (three channels, and with AVX-512 also one or two) lie as
/// dense (N, C, H, W). Sequences lie as (N, tokens, C), C padded likewise, so that tokens are rows
/// of a matrix. The elements are floats, with Precision::kBf16 bfloat16. The numbers of tokens are
/// floats in each precision, densely.
class Layout {
 public:
  /// Requires: `block` is 16, 8 or 1; 1 leaves all tensors dense. `precision` is fp32 or bf16.
  explicit Layout(std::size_t block, Precision precision = Precision::kFp32);
  /// What oneDNN's kernels for this machine's instruction set want.
  [[nodiscard]] static Layout of_this_machine(Precision precision = Precision::kFp32);

  [[nodiscard]] bool is_bf16() const { return precision_ == Precision::kBf16; }

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
  /// Elements of a tensor, padding included.
  [[nodiscard]] std::size_t elements(const TensorShape& shape) const {
    return shape.batch * padded(shape.image).elements();
  }
  [[nodiscard]] um::Bytes tensor_bytes(const TensorShape& shape) const {
    const bool has_floats = !is_bf16() || shape.image.form == nets::Form::kTokens;
    return um::Bytes{elements(shape) * (has_floats ? sizeof(float) : sizeof(Bfloat16))};
  }
  /// Where an element lies within its image, in elements; `channel` may be a padding channel.
  [[nodiscard]] std::size_t index(const nets::Shape& image, std::size_t channel, std::size_t row,
                                  std::size_t column) const {
    const std::size_t b = lanes(image);
    return ((channel / b * image.height + row) * image.width + column) * b + channel % b;
  }
  /// What oneDNN calls the type of the elements.
  [[nodiscard]] dnnl::memory::data_type element_type() const;
  /// A matrix or a row of elements for oneDNN.
  [[nodiscard]] Desc dense_desc(std::initializer_list<std::size_t> sizes) const;
  /// The tensor for oneDNN; padding channels are channels like the others.
  [[nodiscard]] Desc desc(const TensorShape& shape) const;
  /// The same memory, in which padding channels are oneDNN's own padding: it leaves them out and
  /// keeps them zero, even those of what it only reads. Most of its fast kernels do not take it.
  [[nodiscard]] Desc unpadded_desc(const TensorShape& shape) const;

 private:
  [[nodiscard]] dnnl::memory::format_tag tag(std::size_t channels) const;

  std::size_t block_;
  Precision precision_;
};

/// Elements of a tensor: float or Bfloat16.
template <class T>
struct ElementsOf {
  using Type = T;
  [[nodiscard]] T* operator()(std::byte* operand) const { return reinterpret_cast<T*>(operand); }
};

/// What `use` returns when it is called with the ElementsOf a layout's tensors.
template <class Use>
decltype(auto) with_elements(const Layout& layout, const Use& use) {
  return layout.is_bf16() ? use(ElementsOf<Bfloat16>{}) : use(ElementsOf<float>{});
}

/// Zeroes `block` and leaves none of it in the processor's caches, where that is possible.
/// Requires: whole 64 bytes, aligned to that.
void clear_memory(um::Range block);

}  // namespace spillway::host
