#pragma once

#include "prefetch/planners/answer.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// How long a batch should take by its plans: what the simulator says, or in resident mode, where
/// nothing moves, the sum of the tasks' times. `profile` is that of the training step. Where its
/// `timeline` is known, nothing is simulated again.
[[nodiscard]] um::Nanoseconds predicted_step(const Workload& workload,
                                             const prefetch::Profile& profile, const Plans& plans,
                                             MemoryMode memory,
                                             const prefetch::Timeline* timeline = nullptr);

/// Returns `profile`, which is of `of`, for another graph of the same tasks: its state may be far,
/// some updates may run on the far side, or it is of several ranks or micro-batches. A task that
/// goes over fewer bytes, such as the update of a slice (divide_updates()), takes as much less
/// time. Sums of gradients, and tasks that take parameters, take as long as the update of the same
/// parameters would for as many bytes. Algorithms go by name; one that `of` lacks takes as long as
/// one that it has, in the proportion of model_profile().
[[nodiscard]] prefetch::Profile profile_for(const prefetch::TaskGraph& graph,
                                            const prefetch::TaskGraph& of,
                                            prefetch::Profile profile);

/// The same of the training steps of two workloads.
[[nodiscard]] prefetch::Profile profile_for(const Workload& workload, const Workload& of,
                                            prefetch::Profile profile);

}  // namespace spillway
