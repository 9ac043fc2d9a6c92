#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "nets/layer.h"
#include "src/ops/optimizer.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"

namespace spillway {

/// What a backend can be asked to run. Each operation lists its operands in the order in which a
/// Kernel gets them: reads `->` writes. "(dx may be dy)": the two operands may be the same block.
/// All shapes are logical; `x` is what a layer reads, `y` what it makes, `d...` a gradient.

/// batch -> x, labels (int32). Copies images and labels of StepContext::batch, from first_sample
/// on.
struct LoadBatch {
  TensorShape x;
  std::size_t labels_each = 1;  ///< of an image

  [[nodiscard]] std::size_t label_count() const { return x.batch * labels_each; }
};

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
  friend bool operator==(const ConvolutionGeometry&, const ConvolutionGeometry&) = default;
};

/// x, parameters -> y. With `relu`, y = max(0, convolution).
struct ConvolutionForward {
  ConvolutionGeometry geometry;
  bool relu = false;
};
/// dy, parameters -> dx
struct ConvolutionBackwardData {
  ConvolutionGeometry geometry;
};
/// x, dy -> dparameters
struct ConvolutionBackwardWeights {
  ConvolutionGeometry geometry;
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
  friend bool operator==(const TransposedConvolutionGeometry&,
                         const TransposedConvolutionGeometry&) = default;
};

/// x, parameters -> y. With `relu`, y = max(0, transposed convolution).
struct TransposedConvolutionForward {
  TransposedConvolutionGeometry geometry;
  bool relu = false;
};
/// dy, parameters -> dx
struct TransposedConvolutionBackwardData {
  TransposedConvolutionGeometry geometry;
};
/// x, dy -> dparameters
struct TransposedConvolutionBackwardWeights {
  TransposedConvolutionGeometry geometry;
};

/// x, parameters -> y, saved (C mean, C variance of the batch), running (BatchNormStatistics), mask
/// (only with `relu`; Backend::saved_bytes() bytes). `running` is updated, unless the run is a
/// recomputation: running = (1 - momentum) running + momentum batch, with the unbiased variance.
struct BatchNormForward {
  TensorShape x;
  float epsilon;
  float momentum;
  bool relu = false;
};
/// x, parameters, running -> y. Uses the running statistics.
struct BatchNormInference {
  TensorShape x;
  float epsilon;
  bool relu = false;
};
/// x, dy, parameters, saved, mask (only with `relu`) -> dx, dparameters. (dx may be dy)
struct BatchNormBackward {
  TensorShape x;
  float epsilon;
  bool relu = false;
};

/// x -> y (y may be x)
struct ReluForward {
  TensorShape x;
};
/// y, dy -> dx, zero where y is zero. (dx may be dy)
struct ReluBackward {
  TensorShape x;
};

/// a, b -> y; with `relu`, y = max(0, a + b). (y may be a)
struct AddForward {
  TensorShape x;
  bool relu = false;
};
/// a, b, y (only with `relu`) -> d: a + b, with `relu` zero where y is zero. (d may be a)
struct AddGradients {
  TensorShape x;
  bool relu = false;
};

/// x -> y, index (only max pooling; Backend::saved_bytes() bytes: where each maximum came from).
struct PoolForward {
  TensorShape x;
  TensorShape y;
  nets::Pool pool;
};
/// dy, index (only max pooling) -> dx
struct PoolBackward {
  TensorShape x;
  TensorShape y;
  nets::Pool pool;
};

/// x -> y
struct LrnForward {
  TensorShape x;
  nets::LocalResponseNorm norm;
};
/// x, y, dy -> dx (dx may be dy)
struct LrnBackward {
  TensorShape x;
  nets::LocalResponseNorm norm;
};

/// x1, x2, ... -> y: their channels one after the other, copied.
struct ConcatForward {
  std::vector<TensorShape> parts;

  /// Of y.
  [[nodiscard]] TensorShape whole() const {
    TensorShape shape = parts.front();
    shape.image.channels = 0;
    for (const TensorShape& part : parts) shape.image.channels += part.image.channels;
    return shape;
  }
};
/// dy, the d... of the slices that accumulate -> d... of each slice: its channels of dy, added to
/// what is there where it accumulates.
struct ConcatBackward {
  /// What one of the parts gets.
  struct Slice {
    TensorShape x;
    std::size_t first_channel;  ///< in y
    bool accumulates;
  };
  TensorShape y;
  std::vector<Slice> slices;  ///< of the parts that need a gradient
};

/// x -> y: the window of x that begins at `offset`.
struct CropForward {
  TensorShape x;
  TensorShape y;
  nets::Extent offset;
};
/// dy -> dx: zero beside the window
struct CropBackward {
  TensorShape x;
  TensorShape y;
  nets::Extent offset;
};

/// The geometry all three linear operations share. y is (N, features, 1, 1).
struct LinearGeometry {
  TensorShape x;
  std::size_t features;
  bool bias;

  [[nodiscard]] LinearParameters parameters() const {
    return {.out = features, .in = x.image, .bias = bias};
  }
  friend bool operator==(const LinearGeometry&, const LinearGeometry&) = default;
};

/// x, parameters -> y. With `relu`, y = max(0, W x + b).
struct LinearForward {
  LinearGeometry geometry;
  bool relu = false;
};
/// dy, parameters -> dx
struct LinearBackwardData {
  LinearGeometry geometry;
};
/// x, dy -> dparameters
struct LinearBackwardWeights {
  LinearGeometry geometry;
};

/// x -> y (y may be x). The mask is a function of StepContext's seed and step, `stream` and the
/// element's place in the whole batch, so that backward and recomputation draw the same one.
struct DropoutForward {
  TensorShape x;
  float probability;
  std::uint32_t stream;  ///< one number per dropout layer
};
/// dy -> dx (dx may be dy)
struct DropoutBackward {
  TensorShape x;
  float probability;
  std::uint32_t stream;
};

/// logits (N, C, H, W), labels (N, H, W int32), result (only where it accumulates) -> result (float
/// loss, float number of correct predictions), dlogits (gradient of the loss). The loss is `weight`
/// times the mean over the positions whose label is not negative, added to the loss that is in
/// `result` where it accumulates. (dlogits may be logits) Where StepContext counts labels, the mean
/// is over those, of which these are a part.
struct SoftmaxCrossEntropyTrain {
  TensorShape x;
  float weight = 1;
  bool accumulates = false;
};
/// logits, labels -> result (float sum of losses, float number of correct predictions) over the
/// positions whose label is not negative.
struct SoftmaxCrossEntropyEvaluate {
  TensorShape x;
};

/// parameters, momentum, dparameters -> parameters, momentum (optimizer.h)
struct SgdUpdate {
  ParameterSpec parameters;
  SgdOptions options;
};
/// parameters, first moment, second moment, dparameters -> parameters, first moment, second moment
/// (optimizer.h; t is StepContext's step, counted from 1)
struct AdamUpdate {
  ParameterSpec parameters;
  AdamOptions options;
};

/// sum, dparameters -> sum (in place): what the sub-batches before have left, plus dparameters.
struct AccumulateGradients {
  ParameterSpec parameters;
};

using Operation =
    std::variant<LoadBatch, ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardWeights,
                 TransposedConvolutionForward, TransposedConvolutionBackwardData,
                 TransposedConvolutionBackwardWeights, BatchNormForward, BatchNormInference,
                 BatchNormBackward, ReluForward, ReluBackward, AddForward, AddGradients,
                 PoolForward, PoolBackward, LrnForward, LrnBackward, ConcatForward, ConcatBackward,
                 CropForward, CropBackward, LinearForward, LinearBackwardData,
                 LinearBackwardWeights, DropoutForward, DropoutBackward, SoftmaxCrossEntropyTrain,
                 SoftmaxCrossEntropyEvaluate, SgdUpdate, AdamUpdate, AccumulateGradients>;

}  // namespace spillway
