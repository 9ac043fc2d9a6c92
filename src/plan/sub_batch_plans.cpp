#include "src/plan/sub_batch_plans.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "src/program/sub_step.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::SubBatches;
using prefetch::SubBatchNeed;
using prefetch::SubBatchTrial;
using um::Nanoseconds;

std::optional<std::size_t> parse_size(const std::string& text) {
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end != text.data() + text.size() || size == 0) return std::nullopt;
  return size;
}

}  // namespace

const SubBatchPlanner::Cut& SubBatchPlanner::find_cut(const SubBatches& batches) {
  Cut& cut = cuts_[batches.steps];
  if (cut.workload != nullptr) return cut;
  cut.workload =
      std::make_unique<const Workload>(task_.network, task_.size_model, task_.step, batches);
  for (const RepeatedStep& part : cut.workload->training_steps()) {
    cut.profiles.push_back(prefetch::model_profile(part.step.graph, task_.machine));
  }
  return cut;
}

const prefetch::NearNeed& SubBatchPlanner::need(const SubBatches& batches) {
  return find_cut(batches).workload->need();
}

prefetch::Problem SubBatchPlanner::problem(const PlannedSubStep& step) const {
  const prefetch::Plan& plan = step.answer.plan;
  return make_problem(*step.graph, *step.profile, plan.budget, plan.page, task_.request);
}

SubBatchPlanner::Outcome SubBatchPlanner::try_plan(const SubBatches& batches,
                                                   const prefetch::AskOptions& options) {
  const auto& [workload, profiles] = find_cut(batches);
  std::vector<PlannedSubStep> planned;
  std::optional<BudgetTooSmall> max;  // of the refusals
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const StepToPlan step = workload->training_to_plan(i);
    auto answer = try_plan_step(step, profiles[i], task_.budget, task_.request, options);
    if (const auto* const refusal = std::get_if<BudgetTooSmall>(&answer)) {
      if (!max || refusal->smallest() > max->smallest()) max = *refusal;
      continue;
    }
    planned.push_back({.times = workload->training_steps()[i].times,
                       .graph = &step.graph,
                       .profile = &profiles[i],
                       .answer = std::get<prefetch::Answer>(std::move(answer))});
  }
  if (max) return *std::move(max);
  return planned;
}

std::vector<PlannedSubStep> SubBatchPlanner::plan(const SubBatches& batches) {
  Outcome outcome = try_plan(batches, {.fixes_places = true});
  if (const auto* refusal = std::get_if<BudgetTooSmall>(&outcome)) refuse(batches, *refusal);
  return std::get<std::vector<PlannedSubStep>>(std::move(outcome));
}

void SubBatchPlanner::refuse(const SubBatches& batches, const BudgetTooSmall& refusal) {
  const auto& [workload, profiles] = find_cut(batches);
  const auto works = [&, &workload = workload, &profiles = profiles](um::Bytes budget) {
    for (std::size_t i = 0; i < profiles.size(); ++i) {
      if (!has_plan(workload->training_to_plan(i), profiles[i], budget, task_.request))
        return false;
    }
    return true;
  };
  throw refusal.with(
      smallest_run_budget(workload->training_to_plan(), refusal, works),
      batches.steps == 1 ? "" : "in sub-batches of " + std::to_string(batches.size) + ", ");
}

// S_W counts the gradients of parameters, also where the whole batch is one sub-batch.
SubBatchNeed SubBatchPlanner::working_set(std::size_t size) {
  StepOptions options = task_.step;
  options.batch = size;
  const Step training = make_training_step(task_.network, task_.size_model, options);
  const Step first = make_sub_step(training, SubStepPlace::kFirst, task_.network);
  const Step last = make_sub_step(training, SubStepPlace::kLast, task_.network);
  const Step evaluation = make_evaluation_step(task_.network, task_.size_model, options);
  return sub_batch_need(last.graph, prefetch::model_profile(last.graph, task_.machine),
                        run_page(first.graph, evaluation, task_.size_model));
}

std::optional<SubBatches> SubBatchPlanner::by_working_set() {
  const std::size_t batch = task_.step.batch;
  auto batches = prefetch::converge_sub_batches(
      batch, task_.budget, [&](std::size_t size) { return working_set(size); });
  while (batches && std::holds_alternative<BudgetTooSmall>(try_plan(*batches))) {
    if (batches->size == 1) return std::nullopt;
    batches = prefetch::cut(batch, batches->size - 1);
  }
  return batches;
}

SubBatchTrial SubBatchPlanner::attempt(const SubBatches& batches) {
  SubBatchTrial trial;
  const auto& [workload, profiles] = find_cut(batches);
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto times = static_cast<std::int64_t>(workload->training_steps()[i].times);
    for (const std::vector<Nanoseconds>& durations : profiles[i].durations) {
      trial.bound += times * *std::ranges::min_element(durations);
    }
  }
  const Outcome outcome = try_plan(batches);
  if (std::holds_alternative<BudgetTooSmall>(outcome)) return trial;
  trial.total = Nanoseconds{0};
  for (const PlannedSubStep& step : std::get<std::vector<PlannedSubStep>>(outcome)) {
    const auto times = static_cast<std::int64_t>(step.times);
    *trial.total += times * step.answer.timeline.makespan();
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
  const Outcome undivided = try_plan(whole);
  const auto* const of_whole = std::get_if<BudgetTooSmall>(&undivided);
  if (of_whole == nullptr) return whole;
  const SubBatches singles = prefetch::cut(task_.step.batch, 1);
  const Outcome divided = try_plan(singles);
  const auto* const of_singles = std::get_if<BudgetTooSmall>(&divided);
  if (of_singles == nullptr) return singles;
  if (of_whole->smallest() < of_singles->smallest()) refuse(whole, *of_whole);
  refuse(singles, *of_singles);
}

void expect_sub_batch(const std::string& text) {
  if (text == "off" || text == "auto" || parse_size(text)) return;
  throw um::Error{"'" + text +
                  "' is no size of sub-batches; give off, auto, or a number of images like 64"};
}

bool SubBatchChoice::leaves_whole(std::size_t batch) const {
  return is_off() || parse_size(text) == batch;
}

bool SubBatchChoice::agrees_with(std::optional<std::size_t> kept, std::size_t batch) const {
  if (text == "auto") return true;
  if (leaves_whole(batch)) return !kept;
  const std::size_t size = parse_size(text).value_or(batch + 1);
  return kept && size < batch && prefetch::cut(batch, size).size == *kept;
}

prefetch::SubBatches SubBatchChoice::resolve(std::size_t batch, SubBatchPlanner& planner) const {
  if (is_off()) return prefetch::cut(batch, batch);
  const auto size = parse_size(text);
  if (!size) return planner.choose();
  if (*size > batch) {
    throw um::Error{"a sub-batch of " + text + " images (--sub-batch " + text +
                    ") is more than the batch of " + std::to_string(batch) + "; give at most that"};
  }
  return prefetch::cut(batch, *size);
}

}  // namespace spillway
