#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nets/layer.h"
#include "src/ops/backend.h"
#include "src/ops/tensor.h"

namespace spillway::test {

/// What PyTorch made of one layer of tests/golden/layers.json, which tools/golden/make_layer_golden
/// writes.
struct LayerGolden {
  using Numbers = std::vector<double>;  ///< in the canonical order: (N, C, H, W), or parameter.h's

  std::string name;  ///< what its numbers are drawn by: a salt, the layer's words and its inputs
  nets::Layer layer;
  bool relu = false;           ///< one ends the layer
  std::vector<TensorShape> x;  ///< what it reads
  TensorShape y;
  StepContext context;       ///< for dropout
  std::uint32_t stream = 0;  ///< likewise
  /// "y", or "loss" and "correct"; the gradients of what it reads, "dx1", "dx2", ..., and of its
  /// parameters, "dparameters"; of batch norm, "running" and "inference".
  std::map<std::string, Numbers> results;

  /// All of the file. Throws: std::exception when it is not what it should be.
  [[nodiscard]] static std::vector<LayerGolden> read_all();

  /// Numbers that kernels start from: "x1", ..., "parameters", "dy".
  [[nodiscard]] Numbers drawn(const std::string& part, std::size_t count) const;
  /// Means, and positive variances, of the channels of x1.
  [[nodiscard]] Numbers running() const;
  /// Tokens of a vocabulary, likewise.
  [[nodiscard]] Numbers drawn_tokens(const std::string& part, std::size_t count,
                                     std::size_t vocabulary) const;
  /// One for each position of x1; of several, some are negative.
  [[nodiscard]] std::vector<std::int32_t> labels(std::size_t classes) const;
};

}  // namespace spillway::test
