#pragma once

#include <cstddef>
#include <cstdint>

#include "nets/layer.h"
#include "src/ops/operation_row.h"
#include "src/ops/tensor.h"

namespace spillway {

/// x, parameters -> y, saved (C mean, C variance of the batch), running (BatchNormStatistics), mask
/// (only with `relu`; Backend::saved_bytes() bytes). Updates `running`, except in a recomputation:
/// running = (1 - momentum) running + momentum batch, with the unbiased variance.
struct BatchNormForward {
  TensorShape x;
  float epsilon;
  float momentum;
  bool relu = false;

  static constexpr OperationRow kRow{.kind = OperationKind::kNormalization,
                                     .is_recomputable = true,
                                     .workspace = Workspace::kBoth,
                                     .saves = true};
  template <class T>
  using Reads = XAndParameters<T>;
  template <class T>
  struct Writes {
    T y, saved, running, mask;
  };
  [[nodiscard]] std::size_t write_count() const { return relu ? 4 : 3; }
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 3, 8); }
};
/// x, parameters, running -> y. Uses the running statistics.
struct BatchNormInference {
  TensorShape x;
  float epsilon;
  bool relu = false;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T x, parameters, running;
  };
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 2); }
};
/// x, dy, parameters, saved, mask (only with `relu`) -> dx, dparameters. (dx may be dy)
struct BatchNormBackward {
  TensorShape x;
  float epsilon;
  bool relu = false;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kBoth};
  template <class T>
  struct Reads {
    T x, dy, parameters, saved, mask;
  };
  template <class T>
  struct Writes {
    T dx, dparameters;
  };
  [[nodiscard]] std::size_t read_count() const { return relu ? 5 : 4; }
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 5, 12); }
};

/// x -> y (y may be x)
struct ReluForward {
  TensorShape x;

  static constexpr OperationRow kRow{
      .kind = OperationKind::kActivation, .is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyX<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 1); }
};
/// y, dy -> dx, zero where y is zero. With `by_mask` the mask of AddForward replaces y. (dx may be
/// dy)
struct ReluBackward {
  TensorShape x;
  bool by_mask = false;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T y, dy;
  };
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, by_mask ? 2 : 3, 1); }
};

/// x -> y
struct GeluForward {
  TensorShape x;
  bool tanh = false;  ///< nets::Gelu

  static constexpr OperationRow kRow{
      .kind = OperationKind::kActivation, .is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyX<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 12); }
};
/// x, dy -> dx (dx may be dy)
struct GeluBackward {
  TensorShape x;
  bool tanh = false;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  using Reads = XAndDy<T>;
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 3, 24); }
};

/// a, b -> y, mask (only with `saves_mask`; Backend::saved_bytes() bytes: one bit per element, set
/// where y is positive). With `relu`, y = max(0, a + b). (y may be a)
struct AddForward {
  TensorShape x;
  bool relu = false;
  bool saves_mask = false;  ///< only with `relu`

  static constexpr OperationRow kRow{.kind = OperationKind::kJoin,
                                     .is_recomputable = true,
                                     .workspace = Workspace::kNone,
                                     .saves = true};
  template <class T>
  struct Reads {
    T a, b;
  };
  template <class T>
  struct Writes {
    T y, mask;
  };
  [[nodiscard]] std::size_t write_count() const { return saves_mask ? 2 : 1; }
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 3, 1); }
};
/// a, b, y (only with `relu`) -> d, copy (only with `twice`: the same as d). d is a + b; with
/// `relu`, zero where y is zero. With `by_mask` the mask of AddForward replaces y. (d may be a, and
/// copy may be b)
struct AddGradients {
  TensorShape x;
  bool relu = false;
  bool by_mask = false;  ///< only with `relu`
  bool twice = false;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T a, b, y;
  };
  template <class T>
  struct Writes {
    T d, copy;
  };
  [[nodiscard]] std::size_t read_count() const { return relu ? 3 : 2; }
  [[nodiscard]] std::size_t write_count() const { return twice ? 2 : 1; }
  [[nodiscard]] OperationCost cost() const {
    const std::size_t operands = 3 + (relu && !by_mask ? 1 : 0) + (twice ? 1 : 0);
    return element_wise_cost(x, operands, 1);
  }
};

/// Returns the cost of a square, a window's sum and a power per element; backward has two sums.
[[nodiscard]] inline OperationCost lrn_cost(const TensorShape& x,
                                            const nets::LocalResponseNorm& norm,
                                            std::size_t operands, std::size_t sums) {
  return element_wise_cost(x, operands, static_cast<double>(sums * norm.size + 10));
}

/// x -> y
struct LrnForward {
  TensorShape x;
  nets::LocalResponseNorm norm;

  static constexpr OperationRow kRow{.kind = OperationKind::kNormalization,
                                     .is_recomputable = true,
                                     .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyX<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return lrn_cost(x, norm, 2, 1); }
};
/// x, y, dy -> dx (dx may be dy)
struct LrnBackward {
  TensorShape x;
  nets::LocalResponseNorm norm;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T x, y, dy;
  };
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const { return lrn_cost(x, norm, 4, 2); }
};

/// x -> y (y may be x). The mask depends only on StepContext's seed and step, `stream` and the
/// element's position in the whole batch: backward and recomputation draw the same one.
struct DropoutForward {
  TensorShape x;
  float probability;
  std::uint32_t stream;          ///< one number per dropout layer
  std::size_t first_sample = 0;  ///< index in this rank's batch

  static constexpr OperationRow kRow{
      .kind = OperationKind::kDropout, .is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyX<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 10); }
};
/// dy -> dx (dx may be dy)
struct DropoutBackward {
  TensorShape x;
  float probability;
  std::uint32_t stream;
  std::size_t first_sample = 0;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyDy<T>;
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(x, 2, 10); }
};

/// Returns the forward operation that computes the same: dy times the mask.
[[nodiscard]] inline DropoutForward forward_of(const DropoutBackward& op) {
  return {.x = op.x,
          .probability = op.probability,
          .stream = op.stream,
          .first_sample = op.first_sample};
}

}  // namespace spillway
