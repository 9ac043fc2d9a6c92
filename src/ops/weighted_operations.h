#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "nets/layer.h"
#include "src/ops/operation_row.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"

namespace spillway {

/// The geometry that all three operations of a convolution share.
struct ConvolutionGeometry {
  TensorShape x;
  TensorShape y;
  nets::Extent kernel;
  nets::Extent stride;
  nets::Extent padding;
  bool bias;
  nets::Extent dilation = nets::square(1);
  std::size_t groups = 1;

  /// Kind of the forward operation.
  static constexpr OperationKind kKind = OperationKind::kConvolution;

  [[nodiscard]] ConvolutionParameters parameters() const {
    return {.out = y.image.channels,
            .in = x.image.channels,
            .kernel = kernel,
            .bias = bias,
            .groups = groups};
  }
  [[nodiscard]] OperationCost cost() const {
    const std::size_t taps = x.image.channels / groups * kernel.height * kernel.width;
    return {.flops = 2.0 * static_cast<double>(y.elements()) * static_cast<double>(taps),
            .traffic = float_bytes(x.elements() + y.elements() + element_count(parameters()))};
  }
  friend bool operator==(const ConvolutionGeometry&, const ConvolutionGeometry&) = default;
};

/// The geometry that all three operations of a transposed convolution share.
struct TransposedConvolutionGeometry {
  TensorShape x;
  TensorShape y;
  nets::Extent kernel;
  nets::Extent stride;
  nets::Extent padding;
  bool bias;
  nets::Extent dilation = nets::square(1);
  std::size_t groups = 1;

  /// Kind of the forward operation.
  static constexpr OperationKind kKind = OperationKind::kConvolution;

  [[nodiscard]] TransposedConvolutionParameters parameters() const {
    return {.in = x.image.channels,
            .out = y.image.channels,
            .kernel = kernel,
            .bias = bias,
            .groups = groups};
  }
  /// Returns the convolution that computes x from y, with the same weights and without a bias.
  [[nodiscard]] ConvolutionGeometry adjoint() const {
    return {.x = y,
            .y = x,
            .kernel = kernel,
            .stride = stride,
            .padding = padding,
            .bias = false,
            .dilation = dilation,
            .groups = groups};
  }
  /// The products of the adjoint, and the addition of the bias.
  [[nodiscard]] OperationCost cost() const {
    OperationCost cost = adjoint().cost();
    if (bias) cost.traffic += float_bytes(y.image.channels);
    return cost;
  }
  friend bool operator==(const TransposedConvolutionGeometry&,
                         const TransposedConvolutionGeometry&) = default;
};

/// The geometry that all three operations of a linear layer share. y is (N, features, 1, 1).
struct LinearGeometry {
  TensorShape x;
  std::size_t features;
  bool bias;

  /// Kind of the forward operation.
  static constexpr OperationKind kKind = OperationKind::kLinear;

  [[nodiscard]] LinearParameters parameters() const {
    return {.out = features, .in = x.image, .bias = bias};
  }
  [[nodiscard]] OperationCost cost() const {
    return {
        .flops = 2.0 * static_cast<double>(x.elements()) * static_cast<double>(features),
        .traffic = float_bytes(x.elements() + x.batch * features + element_count(parameters()))};
  }
  friend bool operator==(const LinearGeometry&, const LinearGeometry&) = default;
};

/// x, parameters -> y: a convolution, a transposed convolution or W x + b. With `relu`, y is max(0,
/// that result).
template <class Geometry>
struct WeightedForward {
  Geometry geometry;
  bool relu = false;

  static constexpr OperationRow kRow{.kind = Geometry::kKind,
                                     .is_recomputable = true,
                                     .workspace = Workspace::kBoth,
                                     .has_algorithms = true};
  template <class T>
  using Reads = XAndParameters<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};
/// dy, parameters -> dx
template <class Geometry>
struct WeightedBackwardData {
  Geometry geometry;

  static constexpr OperationRow kRow{
      .is_recomputable = false, .workspace = Workspace::kBoth, .has_algorithms = true};
  template <class T>
  struct Reads {
    T dy, parameters;
  };
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};
/// x, dy -> dparameters: a block of the part.
template <class Geometry>
struct WeightedBackwardWeights {
  Geometry geometry;
  ParameterPart part = {};

  static constexpr OperationRow kRow{
      .is_recomputable = false, .workspace = Workspace::kBoth, .has_algorithms = true};
  template <class T>
  using Reads = XAndDy<T>;
  template <class T>
  struct Writes {
    T dparameters;
  };
  [[nodiscard]] OperationCost cost() const { return share_of(geometry.cost(), part); }
};

using ConvolutionForward = WeightedForward<ConvolutionGeometry>;
using ConvolutionBackwardData = WeightedBackwardData<ConvolutionGeometry>;
using ConvolutionBackwardWeights = WeightedBackwardWeights<ConvolutionGeometry>;
using TransposedConvolutionForward = WeightedForward<TransposedConvolutionGeometry>;
using TransposedConvolutionBackwardData = WeightedBackwardData<TransposedConvolutionGeometry>;
using TransposedConvolutionBackwardWeights = WeightedBackwardWeights<TransposedConvolutionGeometry>;
using LinearForward = WeightedForward<LinearGeometry>;
using LinearBackwardData = WeightedBackwardData<LinearGeometry>;
using LinearBackwardWeights = WeightedBackwardWeights<LinearGeometry>;

/// The geometry that all operations on the logits of a vocabulary share.
struct VocabularyGeometry {
  TensorShape x;
  std::size_t vocabulary;
  bool bias = false;

  [[nodiscard]] EmbeddingParameters table() const {
    return {.vocabulary = vocabulary, .features = x.image.channels};
  }
  [[nodiscard]] BiasParameters bias_parameters() const { return {.count = vocabulary}; }
  /// Returns the cost of `products` matrix products, each tokens x vocabulary x channels.
  [[nodiscard]] OperationCost cost(double products, std::size_t tables) const {
    return {
        .flops = products * 2 * static_cast<double>(x.elements()) * static_cast<double>(vocabulary),
        .traffic = float_bytes(2 * x.elements() + tables * element_count(table()))};
  }
};

/// x, table, bias (only with a bias) -> logits, floats (N, V), of one token of each sample: that
/// with number StepContext::position.
struct VocabularyLogits {
  VocabularyGeometry geometry;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T x, table, bias;
  };
  template <class T>
  struct Writes {
    T logits;
  };
  [[nodiscard]] std::size_t read_count() const { return geometry.bias ? 3 : 2; }
  [[nodiscard]] std::size_t logit_count() const { return geometry.x.batch * geometry.vocabulary; }
  [[nodiscard]] OperationCost cost() const {
    const std::size_t numbers = element_count(geometry.table());
    return {.flops = 2 * static_cast<double>(geometry.x.batch) * static_cast<double>(numbers),
            .traffic = float_bytes(numbers + logit_count())};
  }
};

/// Returns the geometry of a convolution or transposed convolution from `x` to `y`.
template <class Layer>
[[nodiscard]] auto geometry_of(const Layer& layer, const TensorShape& x, const TensorShape& y) {
  using Geometry = std::conditional_t<std::same_as<Layer, nets::Convolution>, ConvolutionGeometry,
                                      TransposedConvolutionGeometry>;
  return Geometry{.x = x,
                  .y = y,
                  .kernel = layer.kernel,
                  .stride = layer.stride,
                  .padding = layer.padding,
                  .bias = layer.bias,
                  .dilation = layer.dilation,
                  .groups = layer.groups};
}

}  // namespace spillway
