#include "src/plan/near_plan.h"

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "prefetch/block_sizes.h"
#include "prefetch/planner.h"

namespace spillway {

prefetch::Plan near_plan(const prefetch::TaskGraph& graph, const prefetch::Plan& plan,
                         const prefetch::TaskGraph& near) {
  std::unordered_map<std::string_view, std::uint32_t> algorithms;
  for (const prefetch::TaskRun& run : plan.runs) {
    if (!run.is_recomputation) algorithms.emplace(graph[run.task].name, run.algorithm);
  }
  prefetch::Plan made{
      .planner = plan.planner,
      .graph = fingerprint(near),
      .budget = near_need(near, prefetch::BlockSizes{near, plan.page}).peak_with_workspace,
      .page = plan.page,
      .runs = prefetch::runs_in_order(near)};
  for (std::uint32_t position = 0; position < made.runs.size(); ++position) {
    prefetch::TaskRun& run = made.runs[position];
    run.after = {.runs = position};
    const auto found = algorithms.find(near[run.task].name);
    if (found != algorithms.end()) run.algorithm = found->second;
  }
  return made;
}

}  // namespace spillway
