#pragma once

#include <cstddef>
#include <cstdint>

#include "src/ops/operands.h"
#include "src/ops/operation_row.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"

namespace spillway {

/// Operations on sequences: tensors of nets::Form::kSequence, whose rows are tokens. All but
/// Attention's treat each row alone.

/// The tokens of a batch of sequences as so many vectors: what a row-wise operation goes over.
[[nodiscard]] constexpr TensorShape rows_of(const TensorShape& x) {
  return {.batch = x.batch * x.image.height * x.image.width,
          .image = {.channels = x.image.channels}};
}

/// tokens, parameters (EmbeddingParameters) -> y. `tokens` are floats, each a whole number; those
/// that are no row of the table make NaNs.
struct EmbeddingForward {
  TensorShape y;
  std::size_t vocabulary;

  [[nodiscard]] TensorShape tokens() const {
    return {.batch = y.batch, .image = nets::tokens(y.image.height)};
  }
  [[nodiscard]] EmbeddingParameters parameters() const {
    return {.vocabulary = vocabulary, .features = y.image.channels};
  }
  static constexpr OperationRow kRow{.is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T tokens, parameters;
  };
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(y, 2, 0); }
};
/// tokens, dy, sum (only where it accumulates) -> dparameters: for each row of the table, the sum
/// of dy over the tokens of that number, in their order. `sum` and dparameters are one block, which
/// is added to.
struct EmbeddingBackward {
  TensorShape y;
  std::size_t vocabulary;
  bool accumulates = false;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T tokens, dy, sum;
  };
  template <class T>
  struct Writes {
    T dparameters;
  };
  [[nodiscard]] EmbeddingForward forward() const { return {.y = y, .vocabulary = vocabulary}; }
  [[nodiscard]] std::size_t read_count() const { return accumulates ? 3 : 2; }
  [[nodiscard]] OperationCost cost() const {
    OperationCost cost = element_wise_cost(y, 3, 1);
    if (!accumulates) cost.traffic += float_bytes(vocabulary * y.image.channels);
    return cost;
  }
};

/// x, parameters (PositionParameters) -> y (y may be x)
struct PositionsForward {
  TensorShape x;
  PositionParameters parameters;

  static constexpr OperationRow kRow{.is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  using Reads = XAndParameters<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 1); }
};
/// dy -> dparameters: sums over the batch, in its order; zero for positions that no token has, and
/// for all segments but the first.
struct PositionsBackward {
  TensorShape x;
  PositionParameters parameters;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyDy<T>;
  template <class T>
  struct Writes {
    T dparameters;
  };
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 1, 1); }
};

/// x, parameters (RowNormParameters) -> y, saved (Backend::saved_bytes() bytes: what the way back
/// needs of each row's statistics). With `is_centred` a layer norm, else an RMS norm, which has no
/// beta.
struct RowNormForward {
  TensorShape x;
  float epsilon;
  bool is_centred = true;

  [[nodiscard]] RowNormParameters parameters() const {
    return {.channels = x.image.channels, .bias = is_centred};
  }
  static constexpr OperationRow kRow{.kind = OperationKind::kNormalization,
                                     .is_recomputable = true,
                                     .workspace = Workspace::kNone,
                                     .saves = true};
  template <class T>
  using Reads = XAndParameters<T>;
  template <class T>
  struct Writes {
    T y, saved;
  };
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 8); }
};
/// x, dy, parameters, saved -> dx, dparameters. (dx may be dy)
struct RowNormBackward {
  TensorShape x;
  float epsilon;
  bool is_centred = true;

  [[nodiscard]] RowNormForward forward() const {
    return {.x = x, .epsilon = epsilon, .is_centred = is_centred};
  }
  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T x, dy, parameters, saved;
  };
  template <class T>
  struct Writes {
    T dx, dparameters;
  };
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 3, 12); }
};

/// x -> y: of each row, gates and as many values, half as many numbers (nets::Swiglu).
struct SwigluForward {
  TensorShape y;

  [[nodiscard]] TensorShape x() const {
    return {.batch = y.batch, .image = nets::sequence(y.image.height, 2 * y.image.channels)};
  }
  static constexpr OperationRow kRow{
      .kind = OperationKind::kActivation, .is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyX<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(y, 3, 10); }
};
/// x, dy -> dx
struct SwigluBackward {
  TensorShape y;

  [[nodiscard]] SwigluForward forward() const { return {.y = y}; }
  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  using Reads = XAndDy<T>;
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(y, 5, 16); }
};

/// How an attention divides the channels of what it reads: nets::Rotary says.
struct Heads {
  std::size_t heads;
  std::size_t kv_heads;

  /// Of a head.
  [[nodiscard]] constexpr std::size_t width(const TensorShape& x) const {
    return x.image.channels / (heads + 2 * kv_heads);
  }
  friend constexpr bool operator==(const Heads&, const Heads&) = default;
};

/// x -> y (y may be x): queries and keys turned by their token's angles, values as they are.
struct RotaryForward {
  TensorShape x;
  Heads heads;
  float base;

  static constexpr OperationRow kRow{.is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyX<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 3); }
};
/// dy -> dx: turned back (dx may be dy)
struct RotaryBackward {
  TensorShape x;
  Heads heads;
  float base;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyDy<T>;
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 3); }
};

/// What both operations of an attention share.
struct AttentionGeometry {
  TensorShape x;
  Heads heads;
  bool is_causal = true;
  float dropout = 0;         ///< the probability of a weight to be dropped; zero at evaluation
  std::uint32_t stream = 0;  ///< of dropout, as DropoutForward's

  [[nodiscard]] TensorShape y() const {
    return {.batch = x.batch,
            .image = nets::sequence(x.image.height, heads.heads * heads.width(x))};
  }
  /// Floats of Writes::saved: one for each head and token.
  [[nodiscard]] std::size_t saved_count() const { return x.batch * heads.heads * x.image.height; }
  /// Of `products` matrix products of tokens by tokens by a head's width, for each head.
  [[nodiscard]] OperationCost cost(double products, std::size_t tensors) const {
    const auto tokens = static_cast<double>(x.image.height);
    const double pairs = static_cast<double>(y().elements()) * tokens * (is_causal ? 0.5 : 1);
    return {.flops = products * 2 * pairs,
            .traffic = float_bytes(tensors * x.elements() + y().elements() + saved_count())};
  }
};
/// x -> y, saved: for each sample, head and token the logarithm of the sum of exp(score), float.
/// Tiled: workspace and y grow with the number of tokens, not with its square (Dao et al., 2022).
struct AttentionForward {
  AttentionGeometry geometry;

  static constexpr OperationRow kRow{
      .is_recomputable = true, .workspace = Workspace::kBoth, .saves = true};
  template <class T>
  using Reads = OnlyX<T>;
  template <class T>
  struct Writes {
    T y, saved;
  };
  [[nodiscard]] OperationCost cost() const { return geometry.cost(2, 1); }
};
/// x, y, dy, saved -> dx
struct AttentionBackward {
  AttentionGeometry geometry;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T x, y, dy, saved;
  };
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const { return geometry.cost(5, 2); }
};

/// x (an image), parameters (ClassTokenParameters; only with a class token) -> y
struct ImageTokensForward {
  TensorShape x;
  bool class_token;

  [[nodiscard]] TensorShape y() const {
    return {.batch = x.batch,
            .image = nets::sequence(x.image.height * x.image.width + (class_token ? 1 : 0),
                                    x.image.channels)};
  }
  static constexpr OperationRow kRow{
      .kind = OperationKind::kJoin, .is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  using Reads = XAndParameters<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] std::size_t read_count() const { return class_token ? 2 : 1; }
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 0); }
};
/// dy -> dx, dparameters (only with a class token): the sum over the batch, in its order.
struct ImageTokensBackward {
  TensorShape x;
  bool class_token;

  [[nodiscard]] ImageTokensForward forward() const { return {.x = x, .class_token = class_token}; }
  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyDy<T>;
  template <class T>
  struct Writes {
    T dx, dparameters;
  };
  [[nodiscard]] std::size_t write_count() const { return class_token ? 2 : 1; }
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 0); }
};

/// x -> y, the vectors of the first tokens
struct FirstTokenForward {
  TensorShape x;

  [[nodiscard]] TensorShape y() const {
    return {.batch = x.batch, .image = {.channels = x.image.channels}};
  }
  static constexpr OperationRow kRow{
      .kind = OperationKind::kJoin, .is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyX<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(y(), 2, 0); }
};
/// dy -> dx, zero for all other tokens
struct FirstTokenBackward {
  TensorShape x;

  [[nodiscard]] FirstTokenForward forward() const { return {.x = x}; }
  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyDy<T>;
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 1, 0); }
};

/// What both losses over a vocabulary share.
struct VocabularyGeometry {
  TensorShape x;
  std::size_t vocabulary;
  bool bias = false;

  [[nodiscard]] EmbeddingParameters table() const {
    return {.vocabulary = vocabulary, .features = x.image.channels};
  }
  [[nodiscard]] BiasParameters bias_parameters() const { return {.count = vocabulary}; }
  /// Of so many matrix products of tokens by vocabulary by channels.
  [[nodiscard]] OperationCost cost(double products, std::size_t tables) const {
    return {
        .flops = products * 2 * static_cast<double>(x.elements()) * static_cast<double>(vocabulary),
        .traffic = float_bytes(2 * x.elements() + tables * element_count(table()))};
  }
};
/// x, table, labels (int32, one for each token), bias (only with a bias) -> result (as
/// SoftmaxCrossEntropyTrain's), dx, dtable, dbias (only with a bias). Forward and backward at once,
/// a chunk of tokens after the other, whose logits are all that there is of them. (dx may be x)
struct VocabularyLossTrain {
  VocabularyGeometry geometry;

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
/// x, table, bias (only with a bias) -> logits, floats (N, V), of one token of each sample: that of
/// number StepContext::position.
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

}  // namespace spillway
