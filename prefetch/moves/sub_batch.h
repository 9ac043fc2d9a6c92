#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A batch cut into `steps` sub-batches of `size` samples, whose gradients are added up (moDNN
/// section III-B). The last one may be smaller.
struct SubBatches {
  std::size_t size = 1;
  std::size_t steps = 1;
  friend bool operator==(const SubBatches&, const SubBatches&) = default;
};

/// As many sub-batches as it takes for none to have more than `size` samples, all as equal as
/// possible. Requires: 1 <= size, 1 <= batch.
[[nodiscard]] SubBatches cut(std::size_t batch, std::size_t size);

/// What one sub-batch size asks of near memory.
struct SubBatchNeed {
  um::Bytes weights;  ///< S_W: everything that is always near
  um::Bytes
      fastest;    ///< the largest M_min(t, b), Eq. 1, with the workspace of t's fastest algorithm
  um::Bytes min;  ///< the same with the first algorithms: what Eq. 2 takes the largest of
};

/// Eq. 1 for every task of `graph`, in whole pages.
[[nodiscard]] SubBatchNeed sub_batch_need(const TaskGraph& graph, const Profile& profile,
                                          um::Bytes page);

/// Profiles the step at one sub-batch size.
using ProfileSubBatch = std::function<SubBatchNeed(std::size_t size)>;

/// moDNN's selection (section IV-A, Eq. 3): profiling and selection until the size converges,
/// starting from the whole batch. As printed, Eq. 3 has no unit of samples; it is read as
/// b' = b * (M - S_W) / max M_min(t, b), whose fixed points are the same. Where sizes come back
/// without converging (an algorithm appears at one size and disappears at another), the largest one
/// seen that fits with its fastest algorithms is taken. The result is cut() evenly.
///
/// Nothing when even one sample does not fit with its first algorithms.
/// Complexity: one call of `profile` for each size, of which no more than 64 are tried.
[[nodiscard]] std::optional<SubBatches> converge_sub_batches(std::size_t batch, um::Bytes budget,
                                                             const ProfileSubBatch& profile);

/// What became of planning a whole batch in sub-batches.
struct SubBatchTrial {
  std::optional<um::Nanoseconds> total;  ///< of the whole batch; nothing when no plan fits
  um::Nanoseconds bound{0};              ///< no plan with these sub-batches is shorter
};

using TrySubBatches = std::function<SubBatchTrial(const SubBatches&)>;

/// Sub-batch sizes by trial: the whole batch, then ceil(batch / k) for growing k. The shortest
/// total wins, of equals the larger size. Stops when a bound reaches the best total, as smaller
/// sub-batches use the machine no better, and after four plans in a row that were no shorter.
[[nodiscard]] std::optional<SubBatches> search_sub_batches(std::size_t batch,
                                                           const TrySubBatches& attempt);

}  // namespace spillway::prefetch
