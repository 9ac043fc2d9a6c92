#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "nets/shape.h"

namespace spillway {

/// What a block of parameters holds. The canonical order, in which parameters are initialised,
/// hashed and written to checkpoints, is the order of the comment; a backend may store them in
/// another order and with padding.

/// (out, in / groups, kernel height, kernel width), then (out) biases if any.
struct ConvolutionParameters {
  std::size_t out;
  std::size_t in;  ///< of all groups
  nets::Extent kernel;
  bool bias;
  std::size_t groups = 1;
  friend bool operator==(const ConvolutionParameters&, const ConvolutionParameters&) = default;
};

/// (in, out / groups, kernel height, kernel width), then (out) biases if any.
struct TransposedConvolutionParameters {
  std::size_t in;   ///< of all groups
  std::size_t out;  ///< of all groups
  nets::Extent kernel;
  bool bias;
  std::size_t groups = 1;

  /// The weights alone, as those of the convolution that makes x of y.
  [[nodiscard]] ConvolutionParameters adjoint() const {
    return {.out = in, .in = out, .kernel = kernel, .bias = false, .groups = groups};
  }
  friend bool operator==(const TransposedConvolutionParameters&,
                         const TransposedConvolutionParameters&) = default;
};

/// (out, in.channels, in.height, in.width), then (out) biases if any.
struct LinearParameters {
  std::size_t out;
  nets::Shape in;
  bool bias;
  friend bool operator==(const LinearParameters&, const LinearParameters&) = default;
};

/// (channels) gamma, then (channels) beta.
struct BatchNormParameters {
  std::size_t channels;
  friend bool operator==(const BatchNormParameters&, const BatchNormParameters&) = default;
};

/// (channels) mean, then (channels) variance: batch norm's running statistics, not trained.
struct BatchNormStatistics {
  std::size_t channels;
  friend bool operator==(const BatchNormStatistics&, const BatchNormStatistics&) = default;
};

/// (channels) gamma, then (channels) beta if any: of a norm of each token.
struct RowNormParameters {
  std::size_t channels;
  bool bias;
  friend bool operator==(const RowNormParameters&, const RowNormParameters&) = default;
};

/// (vocabulary, features).
struct EmbeddingParameters {
  std::size_t vocabulary;
  std::size_t features;
  friend bool operator==(const EmbeddingParameters&, const EmbeddingParameters&) = default;
};

/// (positions, features), then (segments, features) if any.
struct PositionParameters {
  std::size_t positions;
  std::size_t segments;
  std::size_t features;
  friend bool operator==(const PositionParameters&, const PositionParameters&) = default;
};

/// (features): the token in front of an image's.
struct ClassTokenParameters {
  std::size_t features;
  friend bool operator==(const ClassTokenParameters&, const ClassTokenParameters&) = default;
};

/// (count) biases alone.
struct BiasParameters {
  std::size_t count;
  friend bool operator==(const BiasParameters&, const BiasParameters&) = default;
};

using ParameterSpec =
    std::variant<ConvolutionParameters, TransposedConvolutionParameters, LinearParameters,
                 BatchNormParameters, BatchNormStatistics, RowNormParameters, EmbeddingParameters,
                 PositionParameters, ClassTokenParameters, BiasParameters>;

/// Numbers in the canonical order.
[[nodiscard]] std::size_t element_count(const ParameterSpec& spec);

/// True where the first of the block's two parts are weights: of layers that sum over inputs, and
/// tables. Weight decay applies to these alone: not to gamma, nor to the second part, biases and
/// beta.
[[nodiscard]] bool has_weights(const ParameterSpec& spec);

/// A part of a parameter block that other programs know as an array of its own.
struct ParameterArray {
  std::string suffix;  ///< of the block's name: ".weight"
  std::vector<std::size_t> shape;
};

/// The arrays that a block consists of, one after the other in the canonical order, with PyTorch's
/// names and shapes.
[[nodiscard]] std::vector<ParameterArray> arrays_of(const ParameterSpec& spec);

}  // namespace spillway
