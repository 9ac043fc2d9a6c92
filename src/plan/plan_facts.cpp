#include "src/plan/plan_facts.h"

#include <algorithm>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/state_home.h"

namespace spillway {

PlanFacts facts_of(const prefetch::Plan& plan, const prefetch::TaskGraph& graph) {
  PlanFacts facts;
  for (const prefetch::Move& move : plan.offloads) {
    if (!move.is_clean) facts.offloaded += move.size;
  }
  for (const prefetch::Move& move : plan.prefetches) facts.prefetched += move.size;
  const prefetch::BlockSizes block_sizes{graph, plan.page};
  facts.state_far = prefetch::StateHome{graph, block_sizes, plan}.far();
  for (const prefetch::FarUpdate& update : graph.far_updates) {
    for (const prefetch::DataId id : update.numbers) facts.state_far += block_sizes.size(id);
  }
  facts.far_updates = plan.far_runs.size();
  for (const prefetch::TaskRun& run : plan.runs) {
    if (run.is_recomputation) ++facts.recomputed_tasks;
    const std::string& algorithm = graph[run.task].algorithms[run.algorithm].name;
    if (algorithm != prefetch::Algorithm{}.name) ++facts.algorithms[algorithm];
  }
  return facts;
}

PlanFacts facts_of(const Plans& plans, const Workload& workload) {
  PlanFacts sum;
  for (std::size_t i = 0; i < plans.training.size(); ++i) {
    const RepeatedStep& part = workload.training_steps()[i];
    const PlanFacts facts = facts_of(plans.training[i], part.step.graph);
    sum.offloaded += part.times * facts.offloaded;
    sum.prefetched += part.times * facts.prefetched;
    sum.state_far = std::max(sum.state_far, facts.state_far);
    sum.far_updates += part.times * facts.far_updates;
    sum.recomputed_tasks += part.times * facts.recomputed_tasks;
    for (const auto& [name, runs] : facts.algorithms) sum.algorithms[name] += part.times * runs;
  }
  return sum;
}

um::Nanoseconds fastest_step(const prefetch::Profile& profile) {
  um::Nanoseconds sum{0};
  for (const std::vector<um::Nanoseconds>& algorithms : profile.durations) {
    sum += *std::ranges::min_element(algorithms);
  }
  return sum;
}

}  // namespace spillway
