#pragma once

#include <cstddef>
#include <cstdint>

#include "src/ops/operation_row.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"

namespace spillway {

/// Operations on sequences: tensors of nets::Form::kSequence, with one row per token. All except
/// attention treat each row separately.

/// Returns the shape of a batch of sequences as a batch of tokens, for row-wise operations.
[[nodiscard]] constexpr TensorShape rows_of(const TensorShape& x) {
  return {.batch = x.batch * x.image.height * x.image.width,
          .image = {.channels = x.image.channels}};
}

/// tokens, parameters (EmbeddingParameters) -> y. `tokens` are whole numbers, stored as floats; a
/// token that is not a row of the table gives NaNs.
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
/// of dy over the tokens with that number, in token order. `sum` and dparameters are the same
/// block.
struct EmbeddingBackward {
  TensorShape y;
  std::size_t vocabulary;
  bool accumulates = false;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kCuda};
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
/// dy -> dparameters: sums over the batch, in its order; zero for unused positions and for all
/// segments except the first.
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

/// x, parameters (RowNormParameters) -> y, saved (Backend::saved_bytes() bytes: each row's
/// statistics for backward). With `is_centred` a layer norm, otherwise an RMS norm, which has no
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
/// x, dy, parameters, saved, sum (only where it accumulates) -> dx, dparameters. (dx may be dy)
/// If it accumulates, `sum` and dx are the same block, to which the gradient is added as
/// AddGradients would add it.
struct RowNormBackward {
  TensorShape x;
  float epsilon;
  bool is_centred = true;
  bool accumulates = false;

  [[nodiscard]] RowNormForward forward() const {
    return {.x = x, .epsilon = epsilon, .is_centred = is_centred};
  }
  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T x, dy, parameters, saved, sum;
  };
  template <class T>
  struct Writes {
    T dx, dparameters;
  };
  [[nodiscard]] std::size_t read_count() const { return accumulates ? 5 : 4; }
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, accumulates ? 4 : 3, 12); }
};

/// x -> y: each row of x has gates, then as many values (nets::Swiglu); y has half as many numbers.
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

/// How an attention divides the channels of its input: see nets::Rotary.
struct Heads {
  std::size_t heads;
  std::size_t kv_heads;

  /// Returns the width of a head.
  [[nodiscard]] constexpr std::size_t width(const TensorShape& x) const {
    return x.image.channels / (heads + 2 * kv_heads);
  }
  friend constexpr bool operator==(const Heads&, const Heads&) = default;
};

/// x -> y (y may be x): queries and keys rotated by their token's angles; values unchanged.
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
/// dy -> dx: rotated back (dx may be dy)
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

/// The geometry that forward and backward of an attention share.
struct AttentionGeometry {
  TensorShape x;
  Heads heads;
  bool is_causal = true;
  float dropout = 0;             ///< probability of dropping a weight; zero in evaluation
  std::uint32_t stream = 0;      ///< of dropout, as in DropoutForward
  std::size_t first_sample = 0;  ///< as in DropoutForward

  [[nodiscard]] TensorShape y() const {
    return {.batch = x.batch,
            .image = nets::sequence(x.image.height, heads.heads * heads.width(x))};
  }
  /// Returns the floats of Writes::saved: one per head and token.
  [[nodiscard]] std::size_t saved_count() const { return x.batch * heads.heads * x.image.height; }
  /// Returns the cost of `products` matrix products per head, each tokens x tokens x width of a
  /// head.
  [[nodiscard]] OperationCost cost(double products, std::size_t tensors) const {
    const auto tokens = static_cast<double>(x.image.height);
    const double pairs = static_cast<double>(y().elements()) * tokens * (is_causal ? 0.5 : 1);
    return {.flops = products * 2 * pairs,
            .traffic = float_bytes(tensors * x.elements() + y().elements() + saved_count())};
  }
};
/// x -> y, saved: for each sample, head and token the logarithm of the sum of exp(score), float.
/// Tiled: workspace and y grow linearly with the number of tokens (Dao et al., 2022).
struct AttentionForward {
  AttentionGeometry geometry;

  static constexpr OperationRow kRow{.is_recomputable = true,
                                     .workspace = Workspace::kBoth,
                                     .saves = true,
                                     .has_algorithms = true};
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

  static constexpr OperationRow kRow{
      .is_recomputable = false, .workspace = Workspace::kBoth, .has_algorithms = true};
  template <class T>
  struct Reads {
    T x, y, dy, saved;
  };
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const { return geometry.cost(5, 2); }
};

}  // namespace spillway
