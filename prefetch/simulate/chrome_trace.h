#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// One execution of a plan, named "predicted" or "measured".
struct NamedTimeline {
  std::string name;
  Timeline timeline;
};

/// Returns executions of one plan as a Chrome trace for Perfetto and chrome://tracing. Each
/// timeline is a process with lanes for compute, waiting, offload and prefetch. It has further
/// lanes for far updates, rank exchanges and page faults if there are any, and shows near memory
/// over time beside the budget. The member "spillway", which viewers ignore, has the planner and
/// the budget. For each process it has the holders of near memory over time (near_changes()).
[[nodiscard]] nlohmann::json to_chrome_trace(const TaskGraph& graph, const Plan& plan,
                                             const std::vector<NamedTimeline>& timelines);

}  // namespace spillway::prefetch
