#pragma once

#include <cstddef>
#include <span>

#include "src/cuda/layout/layout.h"
#include "src/ops/parameter.h"
#include "um/bytes.h"

namespace spillway::cuda {

/// The channels of a convolution's filters in memory: one group's, or all and padding.
[[nodiscard]] std::size_t filter_channels(const ConvolutionParameters& spec);

/// How a block of parameters lies in memory: two parts of floats, one directly behind the other,
/// then, of layers with weights under Precision::kBf16, a bfloat16 copy of both, which kernels
/// read. Who writes the floats of such a block (SgdUpdate, AdamUpdate, import_block) writes the
/// copy too.
///
/// Weights of convolutions are (K, R, S, C) = (out, kernel height, kernel width, in), those of
/// transposed convolutions the same with in and out exchanged, those of linear layers (out, H, W, C
/// of the input), the outputs and C padded to multiples of 8 with zeros, as are biases and batch
/// norm's vectors; with groups, C is the channels of one and not padded. Tables are rows, padded
/// likewise, a vocabulary's rows to a multiple of 8 too. Blocks of gradients and optimizers are
/// laid out alike; what follows their floats is neither read nor written. Those of one part of
/// several (cuts()) have the part's floats and nothing else.
class ParameterLayout {
 public:
  ParameterLayout(Precision precision, const ParameterSpec& spec);

  /// Where weights (or gamma, or mean) begin: 0.
  [[nodiscard]] static constexpr um::Bytes weights() { return {}; }
  /// Where biases (or beta, or variance) begin; a multiple of 32, of biases without groups of 256.
  [[nodiscard]] constexpr um::Bytes bias() const { return um::Bytes{weight_count_ * kFloat}; }
  /// Where the copy of the weights begins, a multiple of 256. Requires: has_bf16_copy().
  [[nodiscard]] um::Bytes bf16_weights() const;
  /// Where the copy of the biases begins, a multiple of 16, without groups of 128. Requires:
  /// has_bf16_copy().
  [[nodiscard]] um::Bytes bf16_bias() const;

  /// Numbers of the first part, padding included.
  [[nodiscard]] constexpr std::size_t weight_count() const { return weight_count_; }
  /// Numbers of the second part, padding included; 0 without biases.
  [[nodiscard]] constexpr std::size_t bias_count() const { return bias_count_; }
  /// Floats of both parts; nothing lies between them.
  [[nodiscard]] constexpr std::size_t float_count() const { return weight_count_ + bias_count_; }
  [[nodiscard]] constexpr bool has_bf16_copy() const { return has_bf16_copy_; }
  /// Of the block, copy included.
  [[nodiscard]] um::Bytes bytes() const;
  /// Where the floats may be cut: linear layers between groups of 8 outputs, which are whole 256
  /// bytes; others nowhere.
  [[nodiscard]] constexpr ParameterCuts cuts() const {
    return {weight_count_, float_count(), cut_unit_};
  }
  /// Of a block of one part: of the only part, bytes().
  [[nodiscard]] um::Bytes part_bytes(const ParameterPart& part) const;

 private:
  static constexpr std::size_t kFloat = sizeof(float);

  std::size_t weight_count_;
  std::size_t bias_count_;
  std::size_t cut_unit_;
  bool has_bf16_copy_;
};

/// From the canonical order to a block in ordinary memory, all of whose bytes are written.
/// Requires: `values` has element_count(spec) numbers, `block` the layout's bytes() and the
/// alignment of floats.
void import_block(Precision precision, const ParameterSpec& spec, std::span<const float> values,
                  std::span<std::byte> block);

/// Back, from the floats of a block. Requires: as above; `block` may end behind the floats.
void export_block(Precision precision, const ParameterSpec& spec, std::span<const std::byte> block,
                  std::span<float> values);

/// What kernels multiply with and add, in a block of a layer with weights: numbers of the tensors'
/// type, the bfloat16 copy where there is one.
[[nodiscard]] inline std::byte* kernel_weights(const ParameterLayout& layout, std::byte* block) {
  const um::Bytes at = layout.has_bf16_copy() ? layout.bf16_weights() : ParameterLayout::weights();
  return block + at.count();
}
/// Null without biases.
[[nodiscard]] inline std::byte* kernel_bias(const ParameterLayout& layout, std::byte* block) {
  if (layout.bias_count() == 0) return nullptr;
  return block + (layout.has_bf16_copy() ? layout.bf16_bias() : layout.bias()).count();
}
/// The biases as floats, of parameters or their gradient. Null without biases.
[[nodiscard]] inline float* float_bias(const ParameterLayout& layout, std::byte* block) {
  if (layout.bias_count() == 0) return nullptr;
  return reinterpret_cast<float*>(block + layout.bias().count());
}

}  // namespace spillway::cuda
