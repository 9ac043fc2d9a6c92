#include "src/plan/batch_facts.h"

#include <algorithm>

namespace spillway {

prefetch::PlanFacts facts_of(const Plans& plans, const Workload& workload) {
  prefetch::PlanFacts sum;
  for (std::size_t i = 0; i < plans.training.size(); ++i) {
    const RepeatedStep& part = workload.training_steps()[i];
    const prefetch::PlanFacts facts = facts_of(plans.training[i], part.step.graph);
    sum.offloaded += part.times * facts.offloaded;
    sum.prefetched += part.times * facts.prefetched;
    sum.state_far = std::max(sum.state_far, facts.state_far);
    sum.far_updates += part.times * facts.far_updates;
    sum.recomputed_tasks += part.times * facts.recomputed_tasks;
    for (const auto& [name, runs] : facts.algorithms) sum.algorithms[name] += part.times * runs;
  }
  return sum;
}

}  // namespace spillway
