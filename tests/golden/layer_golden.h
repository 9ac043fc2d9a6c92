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

/// PyTorch's results for one layer in tests/golden/layers.json, written by
/// tools/golden/make_layer_golden.
struct LayerGolden {
  using Numbers = std::vector<double>;  ///< in order (N, C, H, W), or that of parameter.h

  std::string name;  ///< name of its random sequences: a salt, the layer's text and its inputs
  nets::Layer layer;
  bool relu = false;           ///< the layer ends with a ReLU
  std::vector<TensorShape> x;  ///< inputs
  TensorShape y;
  StepContext context;       ///< for dropout
  std::uint32_t stream = 0;  ///< for dropout
  /// "y", or "loss" and "correct"; gradients of the inputs, "dx1", "dx2", ..., and of the
  /// parameters, "dparameters"; for batch norm "running" and "inference".
  std::map<std::string, Numbers> results;

  /// Reads all layers of the file. Throws: std::exception when it is malformed.
  [[nodiscard]] static std::vector<LayerGolden> read_all();

  /// Returns initial numbers for kernels: "x1", ..., "parameters", "dy".
  [[nodiscard]] Numbers drawn(const std::string& part, std::size_t count) const;
  /// Returns means and positive variances of the channels of x1.
  [[nodiscard]] Numbers running() const;
  /// Returns random tokens of a vocabulary for the input `part`.
  [[nodiscard]] Numbers drawn_tokens(const std::string& part, std::size_t count,
                                     std::size_t vocabulary) const;
  /// Returns a label for each position of x1; if there are several, some are negative.
  [[nodiscard]] std::vector<std::int32_t> labels(std::size_t classes) const;
};

}  // namespace spillway::test
