#pragma once

#include <cstddef>
#include <variant>

#include "src/ops/operation_row.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"
#include "src/ops/weighted_operations.h"

namespace spillway {

/// How an update changes the parameters, by PyTorch's definitions, with one exception. Weight decay
/// applies only to weights of layers, not to biases, gamma or beta, unless an optimizer
/// `decays_all`.
/// With a `clip_norm`, all gradients together are first scaled down to at most that norm, by
/// separate tasks. Below, w are parameters, g gradients, and the learning rate is StepContext's.

/// Stochastic gradient descent: g += weight_decay w; v = momentum v + g; w -= rate v; or, with
/// `nesterov`, w -= rate (g + momentum v).
struct SgdOptions {
  float momentum = 0.9F;
  float weight_decay = 0;
  bool nesterov = false;
  float clip_norm = 0;      ///< 0: gradients are not clipped
  bool decays_all = false;  ///< decays biases and norms, too, as PyTorch does
  friend bool operator==(const SgdOptions&, const SgdOptions&) = default;
};

/// Adam (Kingma and Ba, 2015), in step t = 1, 2, ...: g += weight_decay w; m = beta1 m + (1 -
/// beta1) g; v = beta2 v + (1 - beta2) g^2; w -= rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t))
/// + epsilon). AdamW (Loshchilov and Hutter, 2019) leaves g alone and begins with w -= rate
/// weight_decay w.
struct AdamOptions {
  double beta1 = 0.9;    ///< a double, because 1 - 0.999F is 0.00099999
  double beta2 = 0.999;  ///< a double for the same reason
  float epsilon = 1e-8F;
  float weight_decay = 0;
  bool decoupled = false;   ///< AdamW
  float clip_norm = 0;      ///< see SgdOptions
  bool decays_all = false;  ///< see SgdOptions
  friend bool operator==(const AdamOptions&, const AdamOptions&) = default;
};

/// RMSprop (Hinton, 2012) by PyTorch's rule: g += weight_decay w; s = alpha s + (1 - alpha) g^2; d
/// = g / (sqrt(s) + epsilon); w -= rate d, or with a momentum v = momentum v + d; w -= rate v.
struct RmspropOptions {
  double alpha = 0.99;
  float epsilon = 1e-8F;
  float momentum = 0;  ///< 0: without v
  float weight_decay = 0;
  float clip_norm = 0;      ///< see SgdOptions
  bool decays_all = false;  ///< see SgdOptions
  friend bool operator==(const RmspropOptions&, const RmspropOptions&) = default;
};

using OptimizerOptions = std::variant<SgdOptions, AdamOptions, RmspropOptions>;

/// logits (N, C, H, W), labels (N, H, W int32), result (only where it accumulates) -> result (float
/// loss, float number of correct predictions), dlogits (gradient of the loss). (dlogits may be
/// logits)
/// The loss is `weight` times the mean over the positions with a label that is not negative. It is
/// added to the loss in `result` if it accumulates. If StepContext has a count of labels, the mean
/// divides by that count, since these labels are a part of the batch.
/// With `smoothing` the loss is (1 - smoothing) times the label's loss, plus smoothing times the
/// mean over all classes, as with PyTorch's label_smoothing.
/// With `mixes`, labels are MixedLabels. The loss is (1 - part) times the first label's plus part
/// times the second's; a prediction is correct if it is the label with the larger part.
struct SoftmaxCrossEntropyTrain {
  TensorShape x;
  float weight = 1;
  bool accumulates = false;
  float smoothing = 0;  ///< below 1; the probability mass spread evenly over all classes
  bool mixes = false;   ///< Requires: one position per sample

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T logits, labels, result;
  };
  template <class T>
  struct Writes {
    T result, dlogits;
  };
  [[nodiscard]] std::size_t read_count() const { return accumulates ? 3 : 2; }
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 10); }
};
/// The result of SoftmaxCrossEntropyEvaluate for a sample with one position, in floats.
struct JudgedSample {
  float prediction;   ///< the first class with the largest logit
  float probability;  ///< softmax probability of the prediction
  float rank;         ///< number of classes before the label's: 0 if correct, all without a label
};

/// logits, labels -> result (float sum of losses, float number of correct predictions) over the
/// positions with a label that is not negative. If samples have one position, a JudgedSample for
/// each follows; then, with `gives_logits`, all logits, (N, C) floats.
struct SoftmaxCrossEntropyEvaluate {
  TensorShape x;
  bool gives_logits = false;  ///< Requires: samples with one position

  [[nodiscard]] std::size_t judged_samples() const {
    return x.image.height * x.image.width == 1 ? x.batch : 0;
  }
  /// Returns the number of floats of JudgedSamples in the result.
  [[nodiscard]] std::size_t judged_floats() const {
    return judged_samples() * sizeof(JudgedSample) / sizeof(float);
  }
  /// Returns the number of logits in the result.
  [[nodiscard]] std::size_t given_logits() const { return gives_logits ? x.elements() : 0; }

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T logits, labels;
  };
  template <class T>
  struct Writes {
    T result;
  };
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 1, 10); }
};

/// Logits, in floats, that a loss over a vocabulary holds at once.
inline constexpr std::size_t kVocabularyChunk = (64ULL << 20U) / sizeof(float);
/// Tokens that a GPU takes at least, however many logits that makes: the gradient of the table is
/// read and written once per chunk, which takes no longer than a chunk's product from about this
/// number on (on an H100, for 768 to 4,096 channels).
inline constexpr std::size_t kLeastGpuTokens = 1024;

/// x, table, labels (int32, one for each token), bias (only with a bias) -> result (as
/// SoftmaxCrossEntropyTrain's), dx, dtable, dbias (only with a bias). Computes forward and backward
/// together, chunk of tokens by chunk; only one chunk's logits exist at a time. (dx may be x)
struct VocabularyLossTrain {
  VocabularyGeometry geometry;
  float smoothing = 0;  ///< see SoftmaxCrossEntropyTrain

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T x, table, labels, bias;
  };
  template <class T>
  struct Writes {
    T result, dx, dtable, dbias;
  };
  [[nodiscard]] std::size_t read_count() const { return geometry.bias ? 4 : 3; }
  [[nodiscard]] std::size_t write_count() const { return geometry.bias ? 4 : 3; }
  [[nodiscard]] OperationCost cost() const { return geometry.cost(3, 2); }
};
/// x, table, labels, bias (only with a bias) -> result (as SoftmaxCrossEntropyEvaluate's)
struct VocabularyLossEvaluate {
  VocabularyGeometry geometry;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T x, table, labels, bias;
  };
  template <class T>
  struct Writes {
    T result;
  };
  [[nodiscard]] std::size_t read_count() const { return geometry.bias ? 4 : 3; }
  [[nodiscard]] OperationCost cost() const { return geometry.cost(1, 1); }
};

/// parameters, momentum, dparameters -> parameters, momentum (SgdOptions). For a part,
/// `parameters` is the whole block; momentum and dparameters are blocks of the part.
struct SgdUpdate {
  ParameterSpec parameters;
  SgdOptions options;
  ParameterPart part = {};

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T parameters, momentum, dparameters;
  };
  template <class T>
  struct Writes {
    T parameters, momentum;
  };
  [[nodiscard]] OperationCost cost() const {
    return update_cost(parameters, part, options.nesterov ? 7.0 : 5.0, 5);
  }
};
/// parameters, first moment, second moment, dparameters -> parameters, first moment, second moment
/// (AdamOptions; t is StepContext's step, counted from 1). Parts work as in SgdUpdate.
struct AdamUpdate {
  ParameterSpec parameters;
  AdamOptions options;
  ParameterPart part = {};

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T parameters, first_moment, second_moment, dparameters;
  };
  template <class T>
  struct Writes {
    T parameters, first_moment, second_moment;
  };
  [[nodiscard]] OperationCost cost() const { return update_cost(parameters, part, 15, 7); }
};

/// parameters, square average, dparameters, velocity (only with a momentum) -> parameters, square
/// average, velocity (only with a momentum) (RmspropOptions). Parts work as in SgdUpdate.
struct RmspropUpdate {
  ParameterSpec parameters;
  RmspropOptions options;
  ParameterPart part = {};

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T parameters, square_average, dparameters, velocity;
  };
  template <class T>
  struct Writes {
    T parameters, square_average, velocity;
  };
  [[nodiscard]] bool has_velocity() const { return options.momentum > 0; }
  [[nodiscard]] std::size_t read_count() const { return has_velocity() ? 4 : 3; }
  [[nodiscard]] std::size_t write_count() const { return has_velocity() ? 3 : 2; }
  [[nodiscard]] OperationCost cost() const {
    return update_cost(parameters, part, 12, has_velocity() ? 7 : 5);
  }
};
/// parameters, average -> average (in place): average += (1 - decay) (parameters - average). For a
/// part, `parameters` is the whole block and the average is a block of the part.
struct AverageParameters {
  ParameterSpec parameters;
  double decay = 0;
  ParameterPart part = {};

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T parameters, average;
  };
  template <class T>
  struct Writes {
    T average;
  };
  [[nodiscard]] OperationCost cost() const { return update_cost(parameters, part, 3, 3); }
};

/// new parameters, parameters (only of several parts) -> parameters: copies a part, stored in a
/// block like its gradient's, to its place in the whole block.
struct TakeParameters {
  ParameterSpec parameters;
  ParameterPart part = {};

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T taken, parameters;
  };
  template <class T>
  struct Writes {
    T parameters;
  };
  [[nodiscard]] std::size_t read_count() const { return part.count > 1 ? 2 : 1; }
  [[nodiscard]] OperationCost cost() const { return update_cost(parameters, part, 0, 2); }
};

/// sum, dparameters -> sum (in place): the sum over earlier sub-batches plus dparameters. Both are
/// blocks of the part.
struct AccumulateGradients {
  ParameterSpec parameters;
  ParameterPart part = {};

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T sum, dparameters;
  };
  template <class T>
  struct Writes {
    T sum;
  };
  [[nodiscard]] OperationCost cost() const { return update_cost(parameters, part, 1, 3); }
};

/// dparameters, squares (only where it accumulates) -> squares: one double, the sum of the squares
/// of the part's gradient, added to the old value.
struct AddSquares {
  ParameterSpec parameters;
  ParameterPart part = {};
  bool accumulates = false;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T dparameters, squares;
  };
  template <class T>
  struct Writes {
    T squares;
  };
  [[nodiscard]] std::size_t read_count() const { return accumulates ? 2 : 1; }
  [[nodiscard]] OperationCost cost() const { return update_cost(parameters, part, 2, 1); }
};

/// squares, dparameters -> dparameters (in place): multiplied by min(1, largest_norm /
/// (sqrt(squares) + 1e-6)), as PyTorch's clip_grad_norm_.
struct ClipGradient {
  ParameterSpec parameters;
  ParameterPart part = {};
  float largest_norm;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T squares, dparameters;
  };
  template <class T>
  struct Writes {
    T dparameters;
  };
  [[nodiscard]] OperationCost cost() const { return update_cost(parameters, part, 1, 2); }
};

}  // namespace spillway
