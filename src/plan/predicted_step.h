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

/// `profile`, which is of `of`, for the same tasks in a graph whose state may, or may not, be far,
/// of which some updates run on the far side, or which is of several ranks. Where these update
/// slices (divide_updates()), what goes over fewer bytes takes as much less time, and to take a
/// part of the parameters as long as its update did for as many bytes.
[[nodiscard]] prefetch::Profile profile_for(const prefetch::TaskGraph& graph,
                                            const prefetch::TaskGraph& of,
                                            prefetch::Profile profile);

/// The same of the training steps of two workloads.
[[nodiscard]] prefetch::Profile profile_for(const Workload& workload, const Workload& of,
                                            prefetch::Profile profile);

}  // namespace spillway
