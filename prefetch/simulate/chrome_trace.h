#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// One execution of a plan, with the name it goes by: "predicted", "measured".
struct NamedTimeline {
  std::string name;
  Timeline timeline;
};

/// Executions of one plan as a Chrome trace, which Perfetto and chrome://tracing open: for each
/// timeline a process with lanes for compute, waiting, offload and prefetch, for updates on the far
/// side and for exchanges between ranks where there are some, and its near memory over time beside
/// the budget. The member "spillway", which viewers pass over, has the planner,
/// the budget and, for each process, who holds near memory when (near_changes()).
[[nodiscard]] nlohmann::json to_chrome_trace(const TaskGraph& graph, const Plan& plan,
                                             const std::vector<NamedTimeline>& timelines);

}  // namespace spillway::prefetch
