#include "src/plan/micro_batch_choice.h"

#include <algorithm>
#include <string>
#include <variant>

#include "prefetch/planners/answer.h"
#include "prefetch/profile.h"
#include "src/plan/budget.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"
#include "src/program/combinations.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::BatchCut;
using prefetch::MicroBatchNeed;

}  // namespace

struct MicroBatchSearch::Trial {
  // Does not plan if no plan can be shorter than `shortest`.
  Trial(const Task& task, const BatchCut& cut, std::optional<um::Nanoseconds> shortest)
      : batches{cut},
        near{task.network, task.size_model, task.step, all_of(task.step.batch, cut)},
        choice{near, task.size_model, task.request},
        workload{choice.within(task.budget)},
        profile{prefetch::model_profile(workload.training().graph, task.machine)},
        times{.bound = prefetch::fastest_step(profile)} {
    if (shortest && times.bound >= *shortest) return;
    // The plan that runs is made and proved again.
    auto answer = try_plan_step(workload.training_to_plan(), profile, task.budget, task.request,
                                {.fixes_places = false, .proves = false});
    if (auto* const complaint = std::get_if<BudgetTooSmall>(&answer)) {
      refusal.emplace(*complaint);
    } else {
      times.total = std::get<prefetch::Answer>(answer).timeline.makespan();
    }
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() = default;

  BatchCut batches;
  Workload near;
  StateChoice choice;
  const Workload& workload;
  prefetch::Profile profile;
  prefetch::MicroBatchTrial times;
  std::optional<BudgetTooSmall> refusal;
};

MicroBatchSearch::Trial MicroBatchSearch::try_cut(const BatchCut& batches,
                                                  std::optional<um::Nanoseconds> shortest) const {
  return {task_, batches, shortest};
}

void MicroBatchSearch::refuse(const Trial& trial) const {
  const StepToPlan step = trial.workload.training_to_plan();
  const BatchCut& batches = trial.batches;
  throw trial.refusal->with(
      smallest_run_budget(
          step, *trial.refusal,
          [&](um::Bytes budget) { return has_plan(step, trial.profile, budget, task_.request); }),
      batches.count == 1 ? "" : "in micro-batches of " + std::to_string(batches.size) + ", ");
}

// S_W counts all that is always near.
MicroBatchNeed MicroBatchSearch::working_set(std::size_t size) const {
  const Workload workload{task_.network, task_.size_model, task_.step,
                          all_of(task_.step.batch, prefetch::cut(task_.step.batch, size))};
  const prefetch::TaskGraph& graph = workload.training().graph;
  return micro_batch_need(graph, prefetch::model_profile(graph, task_.machine), workload.page());
}

std::optional<BatchCut> MicroBatchSearch::by_working_set() const {
  const std::size_t batch = task_.step.batch;
  auto batches = prefetch::converge_micro_batches(
      batch, task_.budget, [&](std::size_t size) { return working_set(size); });
  while (batches && try_cut(*batches).refusal) {
    if (batches->size == 1) return std::nullopt;
    batches = prefetch::cut(batch, batches->size - 1);
  }
  return batches;
}

BatchCut MicroBatchSearch::choose() const {
  const bool by_need =
      task_.request.planner->micro_batch_rule() == prefetch::MicroBatchRule::kWorkingSet;
  const auto batches = by_need
                           ? by_working_set()
                           : prefetch::search_micro_batches(
                                 task_.step.batch, [&](const BatchCut& candidate, auto shortest) {
                                   return try_cut(candidate, shortest).times;
                                 });
  if (batches) return *batches;
  // The gradients that micro-batches keep may be more than what a whole batch needs.
  const Trial undivided = try_cut(prefetch::cut(task_.step.batch, task_.step.batch));
  if (!undivided.refusal) return undivided.batches;
  const Trial divided = try_cut(prefetch::cut(task_.step.batch, 1));
  if (!divided.refusal) return divided.batches;
  refuse(undivided.refusal->smallest() < divided.refusal->smallest() ? undivided : divided);
}

bool MicroBatchChoice::leaves_whole(std::size_t batch) const {
  return !is_automatic && count.value_or(1) == 1 && size.value_or(batch) == batch;
}

prefetch::BatchCut MicroBatchChoice::resolve(std::size_t batch,
                                             const std::function<BatchCut()>& search) const {
  if (is_automatic) return search();
  if (count && (*count == 0 || batch % *count != 0)) {
    throw um::Error{"a batch of " + std::to_string(batch) + " cannot be cut into " +
                    std::to_string(*count) +
                    " equal micro-batches; give --micro-batches that divide --batch, or their "
                    "--micro-batch-size"};
  }
  if (size && (*size == 0 || *size > batch)) {
    throw um::Error{"a micro-batch of " + std::to_string(*size) + " is not part of a batch of " +
                    std::to_string(batch) + "; give a --micro-batch-size from 1 to that"};
  }
  return prefetch::cut(batch, count ? batch / *count : size.value_or(batch));
}

prefetch::BatchCut MicroBatchChoice::resolve_for_ranks(std::size_t batch) const {
  const BatchCut cut = resolve(batch, []() -> BatchCut {
    throw um::Error{
        "--micro-batches auto follows the budget of one rank, and each rank has its own; give "
        "their number"};
  });
  expect_equal(cut, batch);
  return cut;
}

}  // namespace spillway
