#include "prefetch/plan_facts.h"

#include <algorithm>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/state_home.h"

namespace spillway::prefetch {

PlanFacts facts_of(const Plan& plan, const TaskGraph& graph) {
  PlanFacts facts;
  for (const Move& move : plan.offloads) {
    if (!move.is_clean) facts.offloaded += move.size;
  }
  for (const Move& move : plan.prefetches) facts.prefetched += move.size;
  const BlockSizes block_sizes{graph, plan.page};
  facts.state_far = StateHome{graph, block_sizes, plan}.far();
  for (const FarUpdate& update : graph.far_updates) {
    for (const DataId id : update.numbers) facts.state_far += block_sizes.size(id);
  }
  facts.far_updates = plan.far_runs.size();
  for (const TaskRun& run : plan.runs) {
    if (run.is_recomputation) ++facts.recomputed_tasks;
    const std::string& algorithm = graph[run.task].algorithms[run.algorithm].name;
    if (algorithm != Algorithm{}.name) ++facts.algorithms[algorithm];
  }
  return facts;
}

um::Nanoseconds fastest_step(const Profile& profile) {
  um::Nanoseconds sum{0};
  for (const std::vector<um::Nanoseconds>& algorithms : profile.durations) {
    sum += *std::ranges::min_element(algorithms);
  }
  return sum;
}

}  // namespace spillway::prefetch
