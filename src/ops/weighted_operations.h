#pragma once

#include <cstddef>

#include "nets/layer.h"
#include "src/ops/operation_row.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"

namespace spillway {

/// The geometry all three convolution operations share.
struct ConvolutionGeometry {
  TensorShape x;
  TensorShape y;
  nets::Extent kernel;
  nets::Extent stride;
  nets::Extent padding;
  bool bias;
  nets::Extent dilation = nets::square(1);
  std::size_t groups = 1;

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

/// x, parameters -> y. With `relu`, y = max(0, convolution).
struct ConvolutionForward {
  ConvolutionGeometry geometry;
  bool relu = false;

  static constexpr OperationRow kRow{.kind = OperationKind::kConvolution,
                                     .is_recomputable = true,
                                     .workspace = Workspace::kBoth,
                                     .has_algorithms = true};
  template <class T>
  struct Reads {
    T x;
    T parameters;
  };
  template <class T>
  struct Writes {
    T y;
  };
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};
/// dy, parameters -> dx
struct ConvolutionBackwardData {
  ConvolutionGeometry geometry;

  static constexpr OperationRow kRow{.kind = OperationKind::kOther,
                                     .is_recomputable = false,
                                     .workspace = Workspace::kBoth,
                                     .has_algorithms = true};
  template <class T>
  struct Reads {
    T dy;
    T parameters;
  };
  template <class T>
  struct Writes {
    T dx;
  };
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};
/// x, dy -> dparameters
struct ConvolutionBackwardWeights {
  ConvolutionGeometry geometry;

  static constexpr OperationRow kRow{.kind = OperationKind::kOther,
                                     .is_recomputable = false,
                                     .workspace = Workspace::kBoth,
                                     .has_algorithms = true};
  template <class T>
  struct Reads {
    T x;
    T dy;
  };
  template <class T>
  struct Writes {
    T dparameters;
  };
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};

/// The geometry all three operations of a transposed convolution share.
struct TransposedConvolutionGeometry {
  TensorShape x;
  TensorShape y;
  nets::Extent kernel;
  nets::Extent stride;
  nets::Extent padding;
  bool bias;
  nets::Extent dilation = nets::square(1);
  std::size_t groups = 1;

  [[nodiscard]] TransposedConvolutionParameters parameters() const {
    return {.in = x.image.channels,
            .out = y.image.channels,
            .kernel = kernel,
            .bias = bias,
            .groups = groups};
  }
  /// The convolution that makes x of y, with the same weights and no bias.
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
  /// As many products as the adjoint, and a sum for the bias.
  [[nodiscard]] OperationCost cost() const {
    OperationCost cost = adjoint().cost();
    if (bias) cost.traffic += float_bytes(y.image.channels);
    return cost;
  }
  friend bool operator==(const TransposedConvolutionGeometry&,
                         const TransposedConvolutionGeometry&) = default;
};

/// x, parameters -> y. With `relu`, y = max(0, transposed convolution).
struct TransposedConvolutionForward {
  TransposedConvolutionGeometry geometry;
  bool relu = false;

  static constexpr OperationRow kRow{.kind = OperationKind::kConvolution,
                                     .is_recomputable = true,
                                     .workspace = Workspace::kBoth,
                                     .has_algorithms = true};
  template <class T>
  struct Reads {
    T x;
    T parameters;
  };
  template <class T>
  struct Writes {
    T y;
  };
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};
/// dy, parameters -> dx
struct TransposedConvolutionBackwardData {
  TransposedConvolutionGeometry geometry;

  static constexpr OperationRow kRow{.kind = OperationKind::kOther,
                                     .is_recomputable = false,
                                     .workspace = Workspace::kBoth,
                                     .has_algorithms = true};
  template <class T>
  struct Reads {
    T dy;
    T parameters;
  };
  template <class T>
  struct Writes {
    T dx;
  };
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};
/// x, dy -> dparameters
struct TransposedConvolutionBackwardWeights {
  TransposedConvolutionGeometry geometry;

  static constexpr OperationRow kRow{.kind = OperationKind::kOther,
                                     .is_recomputable = false,
                                     .workspace = Workspace::kBoth,
                                     .has_algorithms = true};
  template <class T>
  struct Reads {
    T x;
    T dy;
  };
  template <class T>
  struct Writes {
    T dparameters;
  };
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};

/// The geometry all three linear operations share. y is (N, features, 1, 1).
struct LinearGeometry {
  TensorShape x;
  std::size_t features;
  bool bias;

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

/// x, parameters -> y. With `relu`, y = max(0, W x + b).
struct LinearForward {
  LinearGeometry geometry;
  bool relu = false;

  static constexpr OperationRow kRow{
      .kind = OperationKind::kLinear, .is_recomputable = true, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T x;
    T parameters;
  };
  template <class T>
  struct Writes {
    T y;
  };
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};
/// dy, parameters -> dx
struct LinearBackwardData {
  LinearGeometry geometry;

  static constexpr OperationRow kRow{
      .kind = OperationKind::kOther, .is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T dy;
    T parameters;
  };
  template <class T>
  struct Writes {
    T dx;
  };
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};
/// x, dy -> dparameters
struct LinearBackwardWeights {
  LinearGeometry geometry;

  static constexpr OperationRow kRow{
      .kind = OperationKind::kOther, .is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T x;
    T dy;
  };
  template <class T>
  struct Writes {
    T dparameters;
  };
  [[nodiscard]] OperationCost cost() const { return geometry.cost(); }
};

}  // namespace spillway
