#pragma once

#include <cstddef>
#include <variant>

#include "src/ops/operation_row.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"
#include "src/ops/weighted_operations.h"

namespace spillway {

/// How an update turns a gradient into a change of the parameters: PyTorch's definitions, but that
/// weight decay applies to the weights of layers alone, not to biases nor to norms' gamma and beta,
/// unless an optimizer `decays_all`.
/// With a `clip_norm`, all gradients together are first scaled down to that norm, where theirs is
/// larger: tasks of their own do that before the updates. Below, w are parameters, g their
/// gradients, and the learning rate is StepContext's.

/// Stochastic gradient descent: g += weight_decay w; v = momentum v + g; w -= rate v; or, with
/// `nesterov`, w -= rate (g + momentum v).
struct SgdOptions {
  float momentum = 0.9F;
  float weight_decay = 0;
  bool nesterov = false;
  float clip_norm = 0;      ///< 0: gradients stay as they are
  bool decays_all = false;  ///< parameters, as PyTorch does: biases and norms, too
  friend bool operator==(const SgdOptions&, const SgdOptions&) = default;
};

/// Adam (Kingma and Ba, 2015), in step t = 1, 2, ...: g += weight_decay w; m = beta1 m + (1 -
/// beta1) g; v = beta2 v + (1 - beta2) g^2; w -= rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t))
/// + epsilon). AdamW (Loshchilov and Hutter, 2019) leaves g alone and begins with w -= rate
/// weight_decay w.
struct AdamOptions {
  double beta1 = 0.9;    ///< a double: 1 - 0.999F is 0.00099999
  double beta2 = 0.999;  ///< likewise
  float epsilon = 1e-8F;
  float weight_decay = 0;
  bool decoupled = false;   ///< AdamW
  float clip_norm = 0;      ///< as of SgdOptions
  bool decays_all = false;  ///< likewise
  friend bool operator==(const AdamOptions&, const AdamOptions&) = default;
};

/// RMSprop (Hinton, 2012) by PyTorch's rule: g += weight_decay w; s = alpha s + (1 - alpha) g^2; d
/// = g / (sqrt(s) + epsilon); w -= rate d, or with a momentum v = momentum v + d; w -= rate v.
struct RmspropOptions {
  double alpha = 0.99;
  float epsilon = 1e-8F;
  float momentum = 0;  ///< 0: there is no v
  float weight_decay = 0;
  float clip_norm = 0;      ///< as of SgdOptions
  bool decays_all = false;  ///< likewise
  friend bool operator==(const RmspropOptions&, const RmspropOptions&) = default;
};

using OptimizerOptions = std::variant<SgdOptions, AdamOptions, RmspropOptions>;

/// logits (N, C, H, W), labels (N, H, W int32), result (only where it accumulates) -> result (float
/// loss, float number of correct predictions), dlogits (gradient of the loss). The loss is `weight`
/// times the mean over the positions whose label is not negative, added to the loss that is in
/// `result` where it accumulates. With a `smoothing` it is (1 - smoothing) times that of the label,
/// plus smoothing times the mean over all classes, as PyTorch's label_smoothing. (dlogits may be
/// logits) Where StepContext counts labels, the mean is over those, of which these are a part. With
/// `mixes`, labels are MixedLabels: the loss is (1 - part) times that of the first label plus part
/// times that of the second, and the prediction is right where it is the one of the larger part.
struct SoftmaxCrossEntropyTrain {
  TensorShape x;
  float weight = 1;
  bool accumulates = false;
  float smoothing = 0;  ///< below 1; each sample is of all classes by equal parts of this
  bool mixes = false;   ///< requires: one position a sample

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
/// What SoftmaxCrossEntropyEvaluate makes of one sample of one position, floats.
struct JudgedSample {
  float prediction;   ///< the class of the first of the largest logits
  float probability;  ///< of it, by softmax
  float rank;  ///< classes that come before the label's: 0 where it is right, all without a label
};

/// logits, labels -> result (float sum of losses, float number of correct predictions) over the
/// positions whose label is not negative; where a sample has one position, a JudgedSample of each
/// follows, and then where they are asked for all logits, (N, C) floats.
struct SoftmaxCrossEntropyEvaluate {
  TensorShape x;
  bool gives_logits = false;  ///< Requires: samples of one position

  [[nodiscard]] std::size_t judged_samples() const {
    return x.image.height * x.image.width == 1 ? x.batch : 0;
  }
  /// Floats behind the first two.
  [[nodiscard]] std::size_t judged_floats() const {
    return judged_samples() * sizeof(JudgedSample) / sizeof(float);
  }
  /// Logits that follow these.
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

/// Floats of the logits that a loss over a vocabulary has at once, where it has more tokens.
inline constexpr std::size_t kVocabularyChunk = (64ULL << 20U) / sizeof(float);

/// x, table, labels (int32, one for each token), bias (only with a bias) -> result (as
/// SoftmaxCrossEntropyTrain's), dx, dtable, dbias (only with a bias). Forward and backward at once,
/// a chunk of tokens after the other, whose logits are all that there is of them. (dx may be x)
struct VocabularyLossTrain {
  VocabularyGeometry geometry;
  float smoothing = 0;  ///< as SoftmaxCrossEntropyTrain's

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

/// parameters, momentum, dparameters -> parameters, momentum (optimizer.h). Of a part of the
/// parameters, `parameters` is the whole block; momentum and dparameters are blocks of the part.
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
/// (optimizer.h; t is StepContext's step, counted from 1). Of a part as SgdUpdate's.
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
/// average, velocity (likewise) (optimizer.h). Of a part as SgdUpdate's.
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
/// parameters, average -> average (in place): average += (1 - decay) (parameters - average). Of a
/// part, `parameters` is the whole block and the average that of the part.
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

/// new parameters, parameters (only of several parts) -> parameters: those of a part, which lie in
/// a block as its gradient does, to their place in the whole block.
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

/// sum, dparameters -> sum (in place): what the sub-batches before have left, plus dparameters.
/// Both are blocks of the part.
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
/// of the part's gradient, added to those before.
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

/// squares, dparameters -> dparameters (in place): times min(1, largest_norm / (sqrt(squares) +
/// 1e-6)), as PyTorch's clip_grad_norm_.
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
