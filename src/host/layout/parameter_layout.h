#pragma once

#include <cstddef>
#include <span>

#include "src/host/layout/layout.h"
#include "src/host/layout/onednn.h"
#include "src/ops/parameter.h"

namespace spillway::host {

/// Floats in 64 bytes. Parts of blocks and of workspaces begin at a multiple of them.
inline constexpr std::size_t kAlignedFloats = 16;
[[nodiscard]] constexpr std::size_t aligned(std::size_t floats) {
  return (floats + kAlignedFloats - 1) / kAlignedFloats * kAlignedFloats;
}

/// The two parts of a parameter block, in floats: weights and biases, gamma and beta, mean and
/// variance, or two tables. Each part begins at a multiple of 64 bytes, and the gaps are zero.
struct ParameterParts {
  std::size_t first;         ///< floats of the first part, padding channels included
  std::size_t second_begin;  ///< where the second part begins
  std::size_t second;        ///< floats of the second part; 0 without biases
  std::size_t total;         ///< floats of the block
};

[[nodiscard]] ParameterParts parts_of(const Layout& layout, const ParameterSpec& spec);

/// Returns where a block may be cut: only between rows of a linear layer's weights, in groups of 16
/// rows, which fill a multiple of 64 bytes.
[[nodiscard]] ParameterCuts cuts_of(const Layout& layout, const ParameterSpec& spec);

/// Zeroes the floats of a block that belong to neither part.
void zero_gaps(const ParameterParts& parts, float* block);

/// Describe the weights for oneDNN. Convolutions: (out / b, in / b, kernel, b in, b out), with
/// variants for dense sides. Grouped convolutions: dense without padding, since their channels
/// rarely fill blocks. Linear layers: (inputs in an image's memory order, outputs).
[[nodiscard]] Desc weights_desc(const Layout& layout, const ConvolutionParameters& spec);
[[nodiscard]] Desc weights_desc(const Layout& layout, const LinearParameters& spec);
/// Describe the biases for oneDNN; empty without biases.
[[nodiscard]] Desc bias_desc(const Layout& layout, const ConvolutionParameters& spec);
[[nodiscard]] Desc bias_desc(const Layout& layout, const LinearParameters& spec);
/// Describes a vector of `channels` numbers plus padding.
[[nodiscard]] Desc vector_desc(const Layout& layout, std::size_t channels);

/// Convert between the canonical order and a block, which may be stored in parts.
void import_block(const Layout& layout, const ParameterSpec& spec, std::span<const float> values,
                  std::span<float* const> parts);
void export_block(const Layout& layout, const ParameterSpec& spec, std::span<float* const> parts,
                  std::span<float> values);
inline void import_block(const Layout& layout, const ParameterSpec& spec,
                         std::span<const float> values, float* block) {
  import_block(layout, spec, values, std::span<float* const>{&block, 1});
}
inline void export_block(const Layout& layout, const ParameterSpec& spec, float* block,
                         std::span<float> values) {
  export_block(layout, spec, std::span<float* const>{&block, 1}, values);
}

}  // namespace spillway::host
