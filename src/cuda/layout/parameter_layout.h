#pragma once

#include <cstddef>
#include <span>

#include "src/cuda/layout/layout.h"
#include "src/ops/parameter.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// Returns the stored channels of a convolution's filters: one group's, or all with padding.
[[nodiscard]] std::size_t filter_channels(const ConvolutionParameters& spec);

/// Memory layout of a parameter block: two adjacent parts of floats. Layers with weights under
/// Precision::kBf16 append a bfloat16 copy of both parts, which kernels read. Code that writes the
/// floats (UpdateParameters, import_block) must write the copy, too.
///
/// Weights of convolutions are (K, R, S, C) = (out, kernel height, kernel width, in); transposed
/// convolutions exchange in and out. Weights of linear layers are (out, H, W, C of the input).
/// Outputs and C are padded with zeros to multiples of 8, as are biases and batch norm's vectors.
/// With groups, C is the channels of one group and not padded. Tables are rows with the same
/// padding; a vocabulary's rows are padded to a multiple of 8, too.
///
/// Blocks of gradients and optimizer state have the same layout, but data after their floats is
/// neither read nor written. A block of one of several parts (cuts()) has only that part's floats.
class ParameterLayout {
 public:
  ParameterLayout(Precision precision, const ParameterSpec& spec);

  /// Offset of weights (or gamma, or mean): 0.
  [[nodiscard]] static constexpr um::Bytes weights() { return {}; }
  /// Offset of biases (or beta, or variance): a multiple of 32; for biases without groups, of 256.
  [[nodiscard]] constexpr um::Bytes bias() const { return um::Bytes{weight_count_ * kFloat}; }
  /// Offset of the weights' copy, a multiple of 256. Requires: has_bf16_copy().
  [[nodiscard]] um::Bytes bf16_weights() const;
  /// Offset of the biases' copy, a multiple of 16; without groups, of 128. Requires:
  /// has_bf16_copy().
  [[nodiscard]] um::Bytes bf16_bias() const;

  /// Numbers of the first part, padding included.
  [[nodiscard]] constexpr std::size_t weight_count() const { return weight_count_; }
  /// Numbers of the second part, padding included; 0 without biases.
  [[nodiscard]] constexpr std::size_t bias_count() const { return bias_count_; }
  /// Floats of both parts, which are adjacent.
  [[nodiscard]] constexpr std::size_t float_count() const { return weight_count_ + bias_count_; }
  [[nodiscard]] constexpr bool has_bf16_copy() const { return has_bf16_copy_; }
  /// Bytes of the block, copy included.
  [[nodiscard]] um::Bytes bytes() const;
  /// Returns where the floats may be cut: in linear layers between groups of 8 outputs, which are
  /// multiples of 256 bytes; nowhere in others.
  [[nodiscard]] constexpr ParameterCuts cuts() const {
    return {weight_count_, float_count(), cut_unit_};
  }
  /// Bytes of a block of one part; bytes() for an only part.
  [[nodiscard]] um::Bytes part_bytes(const ParameterPart& part) const;

 private:
  static constexpr std::size_t kFloat = sizeof(float);

  std::size_t weight_count_;
  std::size_t bias_count_;
  std::size_t cut_unit_;
  bool has_bf16_copy_;
};

/// Converts from the canonical order to a block in host memory, and writes all of its bytes.
/// Requires: `values` has element_count(spec) numbers; `block` has the layout's bytes() and the
/// alignment of floats.
void import_block(Precision precision, const ParameterSpec& spec, std::span<const float> values,
                  std::span<std::byte> block);

/// Converts the floats of a block back. Requires: as above; `block` may end after the floats.
void export_block(Precision precision, const ParameterSpec& spec, std::span<const std::byte> block,
                  std::span<float> values);

/// Returns the weights that kernels read, in the tensors' type: the bfloat16 copy if there is one.
[[nodiscard]] inline std::byte* kernel_weights(const ParameterLayout& layout, std::byte* block) {
  const um::Bytes at = layout.has_bf16_copy() ? layout.bf16_weights() : ParameterLayout::weights();
  return block + at.count();
}
/// Returns the biases that kernels read, in the tensors' type; null without biases.
[[nodiscard]] inline std::byte* kernel_bias(const ParameterLayout& layout, std::byte* block) {
  if (layout.bias_count() == 0) return nullptr;
  return block + (layout.has_bf16_copy() ? layout.bf16_bias() : layout.bias()).count();
}
/// Returns the biases of parameters or of a gradient, as floats; null without biases.
[[nodiscard]] inline float* float_bias(const ParameterLayout& layout, std::byte* block) {
  if (layout.bias_count() == 0) return nullptr;
  return reinterpret_cast<float*>(block + layout.bias().count());
}

}  // namespace spillway::cuda
