#include "src/plan/file_plans.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "prefetch/block_sizes.h"
#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/task_graph.h"
#include "um/error.h"

namespace spillway {
namespace {

// A plan for `near`, the step of `graph` with all of its updates near, that moves nothing and has
// its tasks run by the algorithms of `plan`, which is of `graph`: for a run in which all is
// resident. Tasks go by name; those that `plan` does not have, the updates, take their first
// algorithm. Its budget is what it needs.
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
  prefetch::add_exchanges(near, made);
  return made;
}

bool is_plan_of(const Workload& workload, const prefetch::JsonFile& file) {
  return prefetch::is_made_for(workload.training().graph, file.root());
}

// Returns the one whose training step the file is made for.
const Workload& workload_of(const StateChoice& choice, const PlanRequest& request,
                            const prefetch::JsonFile& file, const std::string& name) {
  const Workload* found = &choice.near();
  for (const Workload* const other : {&choice.far(), choice.far_updates()}) {
    if (other == nullptr || !is_plan_of(*other, file)) continue;
    if (request.state == StateRule::kNear) {
      throw um::Error{name + " moves weights and optimizer state; leave out --state near"};
    }
    found = other;
  }
  const bool is_far = found == choice.far_updates();
  if (request.update == UpdateRule::kFar && !is_far) {
    throw um::Error{name + " updates weights in near memory; leave out --update far"};
  }
  if (request.update == UpdateRule::kNear && is_far) {
    throw um::Error{name + " updates weights on the far side; leave out --update near"};
  }
  return *found;
}

}  // namespace

bool is_file_of(const StateChoice& choice, const std::string& file) {
  const prefetch::JsonFile read{file};
  return std::ranges::any_of(
      std::array{&choice.near(), &choice.far(), choice.far_updates()},
      [&](const Workload* steps) { return steps != nullptr && is_plan_of(*steps, read); });
}

FilePlan read_file_plan(const StateChoice& choice, const PlanRequest& request,
                        const std::string& path) {
  const prefetch::JsonFile file{path};
  const Workload& workload = workload_of(choice, request, file, path);
  const prefetch::TaskGraph& graph = workload.training().graph;
  FilePlan read{.workload = &workload,
                .plan = {.plan = prefetch::read_plan(file, graph), .name = path}};
  if (request.memory != MemoryMode::kResident || graph.far_updates.empty()) return read;
  // There is no far side.
  const Workload& near = choice.near();
  return {.workload = &near,
          .plan = {.plan = near_plan(graph, read.plan.plan, near.training().graph), .name = path}};
}

}  // namespace spillway
