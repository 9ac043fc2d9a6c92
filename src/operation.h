#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "nets/layer.h"
#include "src/parameter.h"
#include "src/tensor.h"

namespace spillway {

/// What a backend can be asked to run. Each operation lists its operands in the order in which a
/// Kernel gets them: reads `->` writes. "(dx may be dy)": the two operands may be the same block.
/// All shapes are logical; `x` is what a layer reads, `y` what it makes, `d...` a gradient.

/// batch -> x, labels (N int32). Copies images and labels of StepContext::batch, from first_sample
/// on.
struct LoadBatch {
  TensorShape x;
};

/// The geometry all three convolution operations share.
struct ConvolutionGeometry {
  TensorShape x;
  TensorShape y;
  nets::Extent kernel;
  nets::Extent stride;
  nets::Extent padding;
  bool bias;

  [[nodiscard]] ConvolutionParameters parameters() const {
    return {.out = y.image.channels, .in = x.image.channels, .kernel = kernel, .bias = bias};
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

/// logits, labels -> result (float mean loss, float number of correct predictions), dlogits
/// (gradient of the mean loss). (dlogits may be logits) The mean is over the samples whose label is
/// not negative: those that StepContext counts, of which these may be a part; else these.
struct SoftmaxCrossEntropyTrain {
  TensorShape x;
};
/// logits, labels -> result (float sum of losses, float number of correct predictions) over the
/// samples whose label is not negative.
struct SoftmaxCrossEntropyEvaluate {
  TensorShape x;
};

/// parameters, momentum, dparameters -> parameters, momentum. With g = dparameters + weight_decay
/// w: v = momentum v + g; w = w - learning_rate v (PyTorch's SGD). The rate is StepContext's.
struct SgdUpdate {
  ParameterSpec parameters;
  float momentum;
  float weight_decay;
};

/// sum, dparameters -> sum (in place): what the sub-batches before have left, plus dparameters.
struct AccumulateGradients {
  ParameterSpec parameters;
};

using Operation =
    std::variant<LoadBatch, ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardWeights,
                 BatchNormForward, BatchNormInference, BatchNormBackward, ReluForward, ReluBackward,
                 AddForward, AddGradients, PoolForward, PoolBackward, LrnForward, LrnBackward,
                 ConcatForward, ConcatBackward, LinearForward, LinearBackwardData,
                 LinearBackwardWeights, DropoutForward, DropoutBackward, SoftmaxCrossEntropyTrain,
                 SoftmaxCrossEntropyEvaluate, SgdUpdate, AccumulateGradients>;

}  // namespace spillway
