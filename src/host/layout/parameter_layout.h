#pragma once

#include <cstddef>
#include <span>

#include "src/host/layout/layout.h"
#include "src/host/layout/onednn.h"
#include "src/ops/parameter.h"
#include "src/ops/parameter_part.h"

namespace spillway::host {

/// Floats in 64 bytes: parts of blocks and of workspaces begin at multiples of them.
inline constexpr std::size_t kAlignedFloats = 16;
[[nodiscard]] constexpr std::size_t aligned(std::size_t floats) {
  return (floats + kAlignedFloats - 1) / kAlignedFloats * kAlignedFloats;
}

/// The two parts of a parameter block, in floats: weights and biases, gamma and beta, mean and
/// variance, or two tables. Each part begins at a multiple of 64 bytes; what lies between them is
/// zero.
struct ParameterParts {
  std::size_t first;         ///< floats of the first part, padding channels included
  std::size_t second_begin;  ///< where the second part begins
  std::size_t second;        ///< floats of the second part; 0 without biases
  std::size_t total;         ///< floats of the block
};

[[nodiscard]] ParameterParts parts_of(const Layout& layout, const ParameterSpec& spec);

/// Where a block may be cut: between rows of the weights of a linear layer, 16 of which are whole
/// 64 bytes; nowhere else.
[[nodiscard]] ParameterCuts cuts_of(const Layout& layout, const ParameterSpec& spec);

/// Zeroes the floats of a block that belong to no part.
void zero_gaps(const ParameterParts& parts, float* block);

/// The weights part for oneDNN. Convolutions: (out / b, in / b, kernel, b in, b out) and variants
/// for dense sides; with groups, whose channels seldom fill blocks, dense without padding. Linear
/// layers: (inputs in the order in which an image lies in memory, outputs).
[[nodiscard]] Desc weights_desc(const Layout& layout, const ConvolutionParameters& spec);
[[nodiscard]] Desc weights_desc(const Layout& layout, const LinearParameters& spec);
/// The bias part for oneDNN; empty without biases.
[[nodiscard]] Desc bias_desc(const Layout& layout, const ConvolutionParameters& spec);
[[nodiscard]] Desc bias_desc(const Layout& layout, const LinearParameters& spec);
/// Of as many numbers as there are channels and padding channels.
[[nodiscard]] Desc vector_desc(const Layout& layout, std::size_t channels);

/// Between the canonical order and a block, which may be in parts.
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
