#include "src/plan_facts.h"

namespace spillway {

PlanFacts facts_of(const prefetch::Plan& plan, const prefetch::TaskGraph& graph) {
  PlanFacts facts;
  for (const prefetch::Move& move : plan.offloads) {
    if (!move.is_clean) facts.offloaded += move.size;
  }
  for (const prefetch::Move& move : plan.prefetches) facts.prefetched += move.size;
  for (const prefetch::TaskRun& run : plan.runs) {
    if (run.is_recomputation) ++facts.recomputed_tasks;
    const std::string& algorithm = graph[run.task].algorithms[run.algorithm].name;
    if (algorithm != prefetch::Algorithm{}.name) ++facts.algorithms[algorithm];
  }
  return facts;
}

}  // namespace spillway
