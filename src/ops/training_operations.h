#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "src/ops/operation_row.h"
#include "src/ops/optimizers.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"
#include "src/ops/weighted_operations.h"

namespace spillway {

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

/// parameters, optimizer state, dparameters, optimizer state that needs a momentum -> parameters,
/// optimizer state (all in place): a block for each tensor of states_of(options). For a part,
/// `parameters` is the whole block; all others are blocks of the part.
struct UpdateParameters {
  ParameterSpec parameters;
  OptimizerOptions options;
  ParameterPart part = {};

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    std::span<const T> list;
    static Reads of(std::span<const T> list) { return {list}; }
    [[nodiscard]] std::vector<T> listed() const { return {list.begin(), list.end()}; }
  };
  template <class T>
  using Writes = Reads<T>;
  [[nodiscard]] std::size_t write_count() const { return 1 + states_of(options).size(); }
  [[nodiscard]] std::size_t read_count() const { return write_count() + 1; }
  /// Returns the place of dparameters in the list of reads.
  [[nodiscard]] std::size_t gradient_place() const {
    return 1 + std::visit([]<class Rule>(const Rule&) { return kFixedStates<Rule>; }, options);
  }
  [[nodiscard]] OperationCost cost() const {
    const double flops = std::visit([](const auto& rule) { return rule.flops(); }, options);
    return update_cost(parameters, part, flops, read_count() + write_count());
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

/// sum, dparameters -> sum (in place): the sum over earlier micro-batches plus dparameters. Both
/// are blocks of the part.
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
