#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nets/layer.h"
#include "src/ops/operation_row.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"

namespace spillway {

/// Label of a mix of two images, as stored among the labels of a batch.
struct MixedLabel {
  std::int32_t first;   ///< negative: the image is ignored
  std::int32_t second;  ///< a class if the first one is
  float part;           ///< share of the second class, 0 to 1; the first has the rest
};

/// Number of 32-bit numbers that a MixedLabel occupies.
inline constexpr std::size_t kMixedLabelNumbers = sizeof(MixedLabel) / sizeof(std::int32_t);

/// staged (only if `is_staged`: SizeModel::staged_bytes() bytes) -> x, labels (int32). Copies
/// images and labels of StepContext::batch, starting at `first_sample`, or what Backend::stage()
/// made of them. Converts bytes to their numbers; zeroes images of bytes without a label.
struct LoadBatch {
  TensorShape x;
  std::size_t labels_each = 1;  ///< labels per image
  bool is_staged = false;
  bool has_bytes = false;        ///< the images are Batch::bytes
  std::size_t first_sample = 0;  ///< index in StepContext::batch
  /// Samples of the staged batch, where these are a part of it; 0: as many as x has.
  std::size_t staged_samples = 0;

  /// The load of all that is staged.
  [[nodiscard]] LoadBatch staged() const {
    LoadBatch all = *this;
    if (staged_samples > 0) all.x.batch = staged_samples;
    all.first_sample = 0;
    return all;
  }
  [[nodiscard]] std::size_t label_count() const { return x.batch * labels_each; }

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T staged;
  };
  template <class T>
  struct Writes {
    T x, labels;
  };
  [[nodiscard]] std::size_t read_count() const { return is_staged ? 1 : 0; }
  [[nodiscard]] OperationCost cost() const {
    const um::Bytes read = has_bytes ? um::Bytes{x.elements()} : float_bytes(x.elements());
    return {.flops = 0, .traffic = read + float_bytes(x.elements())};
  }
};

[[nodiscard]] inline OperationCost pool_cost(const TensorShape& x, const TensorShape& y,
                                             const nets::Pool& pool) {
  const std::size_t taps = pool.kernel.height * pool.kernel.width;
  return {.flops = static_cast<double>(y.elements() * taps),
          .traffic = float_bytes(x.elements() + y.elements())};
}

/// x -> y, index (only max pooling; Backend::saved_bytes() bytes: where each maximum came from)
struct PoolForward {
  TensorShape x;
  TensorShape y;
  nets::Pool pool;

  static constexpr OperationRow kRow{.kind = OperationKind::kPool,
                                     .is_recomputable = true,
                                     .workspace = Workspace::kHost,
                                     .saves = true};
  template <class T>
  using Reads = OnlyX<T>;
  template <class T>
  struct Writes {
    T y, index;
  };
  [[nodiscard]] std::size_t write_count() const {
    return pool.kind == nets::PoolKind::kMax ? 2 : 1;
  }
  [[nodiscard]] OperationCost cost() const { return pool_cost(x, y, pool); }
};
/// dy, index (only max pooling) -> dx
struct PoolBackward {
  TensorShape x;
  TensorShape y;
  nets::Pool pool;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kHost};
  template <class T>
  struct Reads {
    T dy, index;
  };
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] std::size_t read_count() const { return pool.kind == nets::PoolKind::kMax ? 2 : 1; }
  [[nodiscard]] OperationCost cost() const { return pool_cost(x, y, pool); }
};

/// x1, x2, ... -> y: their channels, concatenated.
struct ConcatForward {
  std::vector<TensorShape> parts;

  static constexpr OperationRow kRow{
      .kind = OperationKind::kJoin, .is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    std::span<const T> parts;
    static Reads of(std::span<const T> list) { return {list}; }
    [[nodiscard]] std::vector<T> listed() const { return {parts.begin(), parts.end()}; }
  };
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] std::size_t read_count() const { return parts.size(); }
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(whole(), 2, 0); }

  /// Returns the shape of y.
  [[nodiscard]] TensorShape whole() const {
    TensorShape shape = parts.front();
    shape.image.channels = 0;
    for (const TensorShape& part : parts) shape.image.channels += part.image.channels;
    return shape;
  }
};
/// dy, the d... of the slices that accumulate -> d... of each slice: its channels of dy, added to
/// the old value if it accumulates.
struct ConcatBackward {
  /// The gradient of one part.
  struct Slice {
    TensorShape x;
    std::size_t first_channel;  ///< in y
    bool accumulates;
  };
  TensorShape y;
  std::vector<Slice> slices;  ///< only of the parts that need a gradient

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  struct Reads {
    T dy;
    std::span<const T> sums;
    static Reads of(std::span<const T> list) { return {list[0], list.subspan(1)}; }
    [[nodiscard]] std::vector<T> listed() const {
      std::vector<T> list{dy};
      list.insert(list.end(), sums.begin(), sums.end());
      return list;
    }
  };
  template <class T>
  struct Writes {
    std::span<const T> parts;
    static Writes of(std::span<const T> list) { return {list}; }
    [[nodiscard]] std::vector<T> listed() const { return {parts.begin(), parts.end()}; }
  };
  [[nodiscard]] std::size_t read_count() const {
    return 1 + static_cast<std::size_t>(std::ranges::count_if(slices, &Slice::accumulates));
  }
  [[nodiscard]] std::size_t write_count() const { return slices.size(); }
  /// Each slice is read and written, and read once more if it accumulates.
  [[nodiscard]] OperationCost cost() const {
    OperationCost cost;
    for (const Slice& slice : slices) {
      const OperationCost part =
          element_wise_cost(slice.x, slice.accumulates ? 3 : 2, slice.accumulates ? 1 : 0);
      cost.flops += part.flops;
      cost.traffic += part.traffic;
    }
    return cost;
  }
};

/// x -> y: the window of x that begins at `offset`.
struct CropForward {
  TensorShape x;
  TensorShape y;
  nets::Extent offset;

  static constexpr OperationRow kRow{
      .kind = OperationKind::kPool, .is_recomputable = true, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyX<T>;
  template <class T>
  using Writes = OnlyY<T>;
  [[nodiscard]] OperationCost cost() const { return element_wise_cost(y, 2, 0); }
};
/// dy -> dx: zero outside the window
struct CropBackward {
  TensorShape x;
  TensorShape y;
  nets::Extent offset;

  static constexpr OperationRow kRow{.is_recomputable = false, .workspace = Workspace::kNone};
  template <class T>
  using Reads = OnlyDy<T>;
  template <class T>
  using Writes = OnlyDx<T>;
  [[nodiscard]] OperationCost cost() const {
    return {.flops = 0, .traffic = float_bytes(x.elements() + y.elements())};
  }
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

/// x -> y: the vectors of the first tokens
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
/// dy -> dx: zero for all other tokens
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

}  // namespace spillway
