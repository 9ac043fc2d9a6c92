#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A batch cut into `count` micro-batches of `size` samples, with accumulated gradients (moDNN
/// section III-B). The last one may be smaller.
struct BatchCut {
  std::size_t size = 1;
  std::size_t count = 1;
  friend bool operator==(const BatchCut&, const BatchCut&) = default;
};

/// Returns the fewest micro-batches with at most `size` samples each, as equal as possible.
/// Requires: 1 <= size, 1 <= batch.
[[nodiscard]] BatchCut cut(std::size_t batch, std::size_t size);

/// The near memory that one micro-batch size needs.
struct MicroBatchNeed {
  um::Bytes weights;  ///< S_W: everything that is always near
  um::Bytes
      fastest;    ///< the largest M_min(t, b), Eq. 1, with the workspace of t's fastest algorithm
  um::Bytes min;  ///< max. M_min(t, b) with the first algorithms, as in Eq. 2
};

/// Returns Eq. 1's maxima over the tasks of `graph`, in whole pages.
[[nodiscard]] MicroBatchNeed micro_batch_need(const TaskGraph& graph, const Profile& profile,
                                              um::Bytes page);

/// Profiles the step at one micro-batch size.
using ProfileMicroBatch = std::function<MicroBatchNeed(std::size_t size)>;

/// moDNN's selection (section IV-A, Eq. 3): alternates profiling and selection until the size
/// converges, starting from the whole batch. Eq. 3 as printed lacks the unit of samples; it is read
/// as b' = b * (M - S_W) / max M_min(t, b), which has the same fixed points. If sizes cycle without
/// converging (an algorithm appears at one size and disappears at another), takes the largest seen
/// size that fits with its fastest algorithms. The result is cut() evenly.
///
/// Returns nullopt when even one sample does not fit with its first algorithms.
/// Complexity: one call of `profile` per size, at most 64.
[[nodiscard]] std::optional<BatchCut> converge_micro_batches(std::size_t batch, um::Bytes budget,
                                                             const ProfileMicroBatch& profile);

/// The result of planning a whole batch in micro-batches.
struct MicroBatchTrial {
  std::optional<um::Nanoseconds> total;  ///< of the whole batch; nullopt when no plan fits
  um::Nanoseconds bound{0};              ///< lower bound for plans with these micro-batches
};

/// Plans a batch in such micro-batches. May leave out the plan if its bound is not below
/// `shortest`, the best total so far.
using TryMicroBatches =
    std::function<MicroBatchTrial(const BatchCut&, std::optional<um::Nanoseconds> shortest)>;

/// Searches micro-batch sizes by trial: the whole batch, then ceil(batch / k) for growing k.
/// Returns the one with the shortest total; among equals, the larger size. Stops when a bound
/// reaches the best total, since smaller micro-batches do not use the machine better, and after
/// four plans in a row without improvement.
[[nodiscard]] std::optional<BatchCut> search_micro_batches(std::size_t batch,
                                                           const TryMicroBatches& attempt);

}  // namespace spillway::prefetch
