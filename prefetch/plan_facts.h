#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// What users ask about a plan.
struct PlanFacts {
  um::Bytes offloaded;   ///< sent over the link in a step
  um::Bytes prefetched;  ///< fetched over the link in a step
  um::Bytes state_far;   ///< of the state, far between steps
  std::size_t recomputed_tasks = 0;
  std::size_t far_updates = 0;                    ///< updates that run on the far side
  std::map<std::string, std::size_t> algorithms;  ///< runs of convolutions, by algorithm
};

[[nodiscard]] PlanFacts facts_of(const Plan& plan, const TaskGraph& graph);

/// All tasks once with their fastest algorithms, one after another: a step with room for
/// everything, and the common denominator of all ratios ("compute_seconds" in every JSON).
[[nodiscard]] um::Nanoseconds fastest_step(const Profile& profile);

}  // namespace spillway::prefetch
