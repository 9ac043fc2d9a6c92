#include "prefetch/learned/learn.h"

#include <algorithm>
#include <utility>

#include "prefetch/learned/look_ahead_plan.h"
#include "prefetch/need.h"
#include "prefetch/occupancy.h"
#include "prefetch/planner.h"
#include "prefetch/planners/on_demand.h"
#include "prefetch/simulate.h"
#include "prefetch/verify.h"

namespace spillway::prefetch {
namespace {

// Small budgets want small chunks: a sixteenth of near memory can be exchanged at a time.
um::Bytes choose_chunk(const LearnOptions& options) {
  const um::Bytes sixteenth{options.budget.count() / 16};
  return std::max(options.page,
                  std::min(chunk_for(options.link), um::round_down(sixteenth, options.page)));
}

}  // namespace

std::variant<Lesson, NotLearned> learn(const RecordedCycles& recorded,
                                       const LearnOptions& options) {
  const GroupingOptions grouping{.together = options.together,
                                 .most = um::Bytes{options.budget.count() / 2}};
  auto made = learn_step(recorded, options.link, options.page, grouping);
  if (auto* refused = std::get_if<NotLearned>(&made)) return std::move(*refused);
  Lesson lesson{.step = std::move(std::get<LearnedStep>(made))};
  const TaskGraph& graph = lesson.step.graph;
  const Profile& profile = lesson.step.profile;
  const Problem problem{.graph = graph,
                        .profile = profile,
                        .budget = options.budget,
                        .page = options.page,
                        .chunk = choose_chunk(options)};
  const auto near = OnDemand{}.plan(problem);
  if (const auto* impossible = std::get_if<Infeasible>(&near)) {
    return NotLearned{to_string(*impossible, graph, options.budget)};
  }
  auto planned = look_ahead_plan(problem);
  if (const auto* impossible = std::get_if<Infeasible>(&planned)) {
    return NotLearned{to_string(*impossible, graph, options.budget)};
  }
  lesson.plan = std::move(std::get<Plan>(planned));
  const auto verdict = verify(graph, lesson.plan);
  if (const auto* violation = std::get_if<Violation>(&verdict)) {
    return NotLearned{"the plan does not hold: " + violation->reason};
  }
  lesson.computing = compute_time(profile, lesson.plan.runs);
  lesson.planned = simulate(graph, lesson.plan, profile).makespan();
  lesson.on_demand = simulate(graph, std::get<Plan>(near), profile).makespan();
  if (lesson.planned >= lesson.on_demand) {
    return NotLearned{"page faults alone are as fast as the best plan"};
  }
  return lesson;
}

}  // namespace spillway::prefetch
