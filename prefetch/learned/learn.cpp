#include "prefetch/learned/learn.h"

#include <algorithm>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/learned/look_ahead_plan.h"
#include "prefetch/need.h"
#include "prefetch/planner.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"

namespace spillway::prefetch {
namespace {

// Small budgets want small chunks: a sixteenth of near memory can be exchanged at a time.
um::Bytes choose_chunk(const LearnOptions& options) {
  const um::Bytes sixteenth{options.budget.count() / 16};
  return std::max(options.page,
                  std::min(chunk_for(options.link), um::round_down(sixteenth, options.page)));
}

}  // namespace

std::variant<ReplayPlan, NotLearned> learn(const RecordedCycles& recorded,
                                           const LearnOptions& options) {
  const GroupingOptions grouping{.together = options.together,
                                 .max = um::Bytes{options.budget.count() / 2}};
  auto made = learn_step(recorded, options.link, options.page, grouping);
  if (auto* refused = std::get_if<NotLearned>(&made)) return std::move(*refused);
  ReplayPlan replay_plan{.step = std::move(std::get<LearnedStep>(made))};
  const TaskGraph& graph = replay_plan.step.graph;
  const Profile& profile = replay_plan.step.profile;
  const Problem problem{.graph = graph,
                        .profile = profile,
                        .budget = options.budget,
                        .page = options.page,
                        .chunk = choose_chunk(options)};
  const auto near = find_planner("on-demand").plan(problem);
  if (const auto* impossible = std::get_if<Infeasible>(&near)) {
    return NotLearned{to_string(*impossible, graph, options.budget)};
  }
  auto planned = look_ahead_plan(problem);
  if (const auto* impossible = std::get_if<Infeasible>(&planned)) {
    return NotLearned{to_string(*impossible, graph, options.budget)};
  }
  replay_plan.plan = std::move(std::get<Plan>(planned));
  const auto verdict = verify(graph, replay_plan.plan);
  if (const auto* violation = std::get_if<Violation>(&verdict)) {
    return NotLearned{"the plan does not hold: " + violation->reason};
  }
  replay_plan.computing = compute_time(profile, replay_plan.plan.runs);
  replay_plan.planned = simulate(graph, replay_plan.plan, profile).makespan();
  replay_plan.on_demand = simulate(graph, std::get<Plan>(near), profile).makespan();
  if (replay_plan.planned >= replay_plan.on_demand) {
    return NotLearned{"page faults alone are as fast as the best plan"};
  }
  return replay_plan;
}

}  // namespace spillway::prefetch
