#pragma once

#include "prefetch/task_graph.h"

namespace spillway {

/// What the tasks of a sub-batch end with.
enum class SubStepEnd {
  kGradients,  ///< gradients added to those of the sub-batches before
  kUpdates     ///< the same, then the updates: the last sub-batch of a batch
};

/// The graph of one sub-batch's tasks, for planning, from the training step of a network at the
/// sub-batch's size (moDNN section III-B). Parameter gradients outlive it: they are state, always
/// near, and who wrote them adds to them. Where the first sub-batch clears them is not looked at.
///
/// Every sub-batch normalizes by its own statistics, so with batch norm a batch in sub-batches is
/// not the same training as the whole batch; see normalizes_by_batch().
[[nodiscard]] prefetch::TaskGraph make_sub_step(prefetch::TaskGraph training, SubStepEnd end);

/// True when a task of the step keeps running statistics of its batch.
[[nodiscard]] bool normalizes_by_batch(const prefetch::TaskGraph& training);

}  // namespace spillway
