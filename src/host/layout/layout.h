#pragma once

#include <cstddef>
#include <initializer_list>

#include "src/host/layout/onednn.h"
#include "src/ops/tensor.h"
#include "um/bytes.h"

namespace spillway::host {

/// Memory layout of activations: (N, C / b, H, W, b), since oneDNN's fast kernels take nothing else
/// (nChw16c and nChw8c). Here b is the floats of one vector register, and channels are padded with
/// zeros to a multiple of b. Images (three channels; with AVX-512 also one or two) are dense (N, C,
/// H, W). Sequences are (N, tokens, C) with C padded in the same way, so that tokens are rows of a
/// matrix. Elements are floats, or bfloat16 with Precision::kBf16. Token numbers are dense floats
/// in every precision.
class Layout {
 public:
  /// Requires: `block` is 16, 8 or 1, where 1 makes all tensors dense; `precision` is fp32 or bf16.
  explicit Layout(std::size_t block, Precision precision = Precision::kFp32);
  /// Returns the layout for this machine's instruction set.
  [[nodiscard]] static Layout of_this_machine(Precision precision = Precision::kFp32);

  [[nodiscard]] bool is_bf16() const { return precision_ == Precision::kBf16; }

  [[nodiscard]] std::size_t block() const { return block_; }
  [[nodiscard]] bool is_dense(std::size_t channels) const {
    return block_ <= 1 || channels == 3 || (block_ == 16 && channels < 3);
  }
  [[nodiscard]] std::size_t padded(std::size_t channels) const {
    return is_dense(channels) ? channels : (channels + block_ - 1) / block_ * block_;
  }
  /// Returns the number of adjacent channels: b, all channels of a token, or 1 in a dense tensor.
  [[nodiscard]] std::size_t lanes(const nets::Shape& image) const {
    if (image.form == nets::Form::kSequence) return padded(image.channels);
    return image.form == nets::Form::kTokens || is_dense(image.channels) ? 1 : block_;
  }
  /// Returns the image with padding.
  [[nodiscard]] nets::Shape padded(const nets::Shape& image) const {
    if (image.form == nets::Form::kTokens) return image;
    return {.channels = padded(image.channels),
            .height = image.height,
            .width = image.width,
            .form = image.form};
  }
  /// Returns the number of elements of a tensor, padding included.
  [[nodiscard]] std::size_t elements(const TensorShape& shape) const {
    return shape.batch * padded(shape.image).elements();
  }
  [[nodiscard]] um::Bytes tensor_bytes(const TensorShape& shape) const {
    const bool has_floats = !is_bf16() || shape.image.form == nets::Form::kTokens;
    return um::Bytes{elements(shape) * (has_floats ? sizeof(float) : sizeof(Bfloat16))};
  }
  /// Returns an element's offset within its image, in elements; `channel` may be a padding channel.
  [[nodiscard]] std::size_t index(const nets::Shape& image, std::size_t channel, std::size_t row,
                                  std::size_t column) const {
    const std::size_t b = lanes(image);
    return ((channel / b * image.height + row) * image.width + column) * b + channel % b;
  }
  /// Returns oneDNN's type of the elements.
  [[nodiscard]] dnnl::memory::data_type element_type() const;
  /// Describes a dense matrix or row of elements.
  [[nodiscard]] Desc dense_desc(std::initializer_list<std::size_t> sizes) const;
  /// Describes the tensor, with padding channels as ordinary channels.
  [[nodiscard]] Desc desc(const TensorShape& shape) const;
  /// Describes the same memory with padding channels as oneDNN's own padding. oneDNN then skips
  /// them and keeps them zero, even in tensors that it only reads. Most of its fast kernels do not
  /// support this.
  [[nodiscard]] Desc unpadded_desc(const TensorShape& shape) const;

 private:
  [[nodiscard]] dnnl::memory::format_tag tag(std::size_t channels) const;

  std::size_t block_;
  Precision precision_;
};

/// Casts an operand to a tensor's elements: float or Bfloat16.
template <class T>
struct ElementsOf {
  using Type = T;
  [[nodiscard]] T* operator()(std::byte* operand) const { return reinterpret_cast<T*>(operand); }
};

/// Returns the result of calling `use` with the ElementsOf of a layout's tensors.
template <class Use>
decltype(auto) with_elements(const Layout& layout, const Use& use) {
  return layout.is_bf16() ? use(ElementsOf<Bfloat16>{}) : use(ElementsOf<float>{});
}

/// Zeroes `block`, bypassing the processor's caches where possible. Requires: a multiple of 64
/// bytes, aligned to 64.
void clear_memory(um::Range block);

}  // namespace spillway::host
