#include "src/sub_batch_plans.h"

#include <algorithm>
#include <utility>

#include "prefetch/occupancy.h"
#include "prefetch/planners/resident.h"
#include "prefetch/simulate.h"
#include "src/sub_step.h"

namespace spillway {

using prefetch::Infeasible;
using prefetch::Plan;
using prefetch::Profile;
using prefetch::SubBatches;
using prefetch::SubBatchNeed;
using prefetch::SubBatchTrial;
using prefetch::TaskGraph;
using um::Nanoseconds;

const std::vector<SubBatchPlanner::SubStep>& SubBatchPlanner::sub_steps(const SubBatches& batches) {
  std::vector<SubStep>& family = families_[batches.steps];
  if (!family.empty()) return family;
  for (RepeatedStep& made : make_sub_steps(task_.network, task_.sizing, task_.step, batches)) {
    Profile profile = prefetch::model_profile(made.step.graph, task_.machine);
    family.push_back(
        {.times = made.times, .graph = std::move(made.step.graph), .profile = std::move(profile)});
  }
  return family;
}

prefetch::Problem SubBatchPlanner::problem(const TaskGraph& graph, const Profile& profile,
                                           um::Bytes page) const {
  return make_problem(graph, profile, task_.budget, page, task_.request);
}

SubBatchPlanner::Outcome SubBatchPlanner::try_plan(const SubBatches& batches) {
  const prefetch::Resident resident;
  const bool stays = task_.request.memory == MemoryMode::kResident;
  const prefetch::Planner& planner = stays ? resident : *task_.request.planner;
  std::vector<PlannedSubStep> planned;
  const um::Bytes page = step_page(sub_steps(batches).front().graph, task_.sizing);
  for (const SubStep& step : sub_steps(batches)) {
    auto result = planner.plan(problem(step.graph, step.profile, page));
    if (const auto* reason = std::get_if<Infeasible>(&result)) return *reason;
    planned.push_back({.times = step.times,
                       .graph = &step.graph,
                       .profile = &step.profile,
                       .plan = std::get<Plan>(std::move(result))});
  }
  return planned;
}

std::vector<PlannedSubStep> SubBatchPlanner::plan(const SubBatches& batches) {
  Outcome outcome = try_plan(batches);
  if (const auto* reason = std::get_if<Infeasible>(&outcome)) refuse(batches, *reason);
  return std::get<std::vector<PlannedSubStep>>(std::move(outcome));
}

void SubBatchPlanner::refuse(const SubBatches& batches, Infeasible reason) {
  const TaskGraph& graph = sub_steps(batches).front().graph;
  throw BudgetTooSmall{"in sub-batches of " + std::to_string(batches.size) + ", " +
                           to_string(reason, graph, task_.budget),
                       reason.smallest_budget};
}

// S_W counts the gradients of parameters, also where the whole batch is one sub-batch.
SubBatchNeed SubBatchPlanner::need(std::size_t size) {
  StepOptions options = task_.step;
  options.batch = size;
  const Step training = make_training_step(task_.network, task_.sizing, options);
  const Step first = make_sub_step(training, SubStepPlace::kFirst, task_.network);
  const Step last = make_sub_step(training, SubStepPlace::kLast, task_.network);
  return sub_batch_need(last.graph, prefetch::model_profile(last.graph, task_.machine),
                        step_page(first.graph, task_.sizing));
}

std::optional<SubBatches> SubBatchPlanner::by_working_set() {
  const std::size_t batch = task_.step.batch;
  auto batches = prefetch::converge_sub_batches(batch, task_.budget,
                                                [&](std::size_t size) { return need(size); });
  while (batches && std::holds_alternative<Infeasible>(try_plan(*batches))) {
    if (batches->size == 1) return std::nullopt;
    batches = prefetch::cut(batch, batches->size - 1);
  }
  return batches;
}

SubBatchTrial SubBatchPlanner::attempt(const SubBatches& batches) {
  SubBatchTrial trial;
  for (const SubStep& step : sub_steps(batches)) {
    const auto times = static_cast<std::int64_t>(step.times);
    for (const std::vector<Nanoseconds>& durations : step.profile.durations) {
      trial.bound += times * *std::ranges::min_element(durations);
    }
  }
  const Outcome outcome = try_plan(batches);
  if (std::holds_alternative<Infeasible>(outcome)) return trial;
  trial.total = Nanoseconds{0};
  for (const PlannedSubStep& step : std::get<std::vector<PlannedSubStep>>(outcome)) {
    const auto times = static_cast<std::int64_t>(step.times);
    *trial.total += times * prefetch::simulate(*step.graph, step.plan, *step.profile).makespan();
  }
  return trial;
}

SubBatches SubBatchPlanner::choose() {
  const bool by_need =
      task_.request.planner->sub_batch_rule() == prefetch::SubBatchRule::kWorkingSet;
  const auto batches =
      by_need ? by_working_set()
              : prefetch::search_sub_batches(task_.step.batch, [&](const SubBatches& candidate) {
                  return attempt(candidate);
                });
  if (batches) return *batches;
  // The gradients that sub-batches keep may be more than what a whole batch needs.
  const SubBatches whole = prefetch::cut(task_.step.batch, task_.step.batch);
  if (std::holds_alternative<std::vector<PlannedSubStep>>(try_plan(whole))) return whole;
  const SubBatches singles = prefetch::cut(task_.step.batch, 1);
  const Outcome outcome = try_plan(singles);
  if (const auto* reason = std::get_if<Infeasible>(&outcome)) refuse(singles, *reason);
  return singles;
}

}  // namespace spillway
