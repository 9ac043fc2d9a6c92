#include "src/plan/micro_batch_choice.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <variant>

#include "prefetch/planners/answer.h"
#include "prefetch/profile.h"
#include "src/plan/budget.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"
#include "um/error.h"

namespace spillway {
namespace {

using prefetch::SubBatches;
using prefetch::SubBatchNeed;

std::optional<std::size_t> parse_size(const std::string& text) {
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end != text.data() + text.size() || size == 0) return std::nullopt;
  return size;
}

}  // namespace

struct MicroBatchSearch::Trial {
  Trial(const Task& task, const SubBatches& cut)
      : batches{cut},
        near{task.network, task.size_model, task.step, cut},
        choice{near, task.size_model, task.request},
        workload{choice.within(task.budget)},
        profile{prefetch::model_profile(workload.training().graph, task.machine)},
        answer{try_plan_step(workload.training_to_plan(), profile, task.budget, task.request,
                             {.fixes_places = false})} {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() = default;

  // Null where the planner has a plan.
  [[nodiscard]] const BudgetTooSmall* refusal() const {
    return std::get_if<BudgetTooSmall>(&answer);
  }
  [[nodiscard]] prefetch::SubBatchTrial times() const {
    prefetch::SubBatchTrial trial{.bound = prefetch::fastest_step(profile)};
    if (refusal() == nullptr) {
      trial.total = std::get<prefetch::Answer>(answer).timeline.makespan();
    }
    return trial;
  }

  SubBatches batches;
  Workload near;
  StateChoice choice;
  const Workload& workload;
  prefetch::Profile profile;
  std::variant<prefetch::Answer, BudgetTooSmall> answer;
};

MicroBatchSearch::Trial MicroBatchSearch::try_cut(const SubBatches& batches) const {
  return {task_, batches};
}

void MicroBatchSearch::refuse(const Trial& trial) const {
  const StepToPlan step = trial.workload.training_to_plan();
  const SubBatches& batches = trial.batches;
  throw trial.refusal()->with(
      smallest_run_budget(
          step, *trial.refusal(),
          [&](um::Bytes budget) { return has_plan(step, trial.profile, budget, task_.request); }),
      batches.steps == 1 ? "" : "in sub-batches of " + std::to_string(batches.size) + ", ");
}

// S_W counts all that is always near.
SubBatchNeed MicroBatchSearch::working_set(std::size_t size) const {
  const Workload workload{task_.network, task_.size_model, task_.step,
                          prefetch::cut(task_.step.batch, size)};
  const prefetch::TaskGraph& graph = workload.training().graph;
  return sub_batch_need(graph, prefetch::model_profile(graph, task_.machine), workload.page());
}

std::optional<SubBatches> MicroBatchSearch::by_working_set() const {
  const std::size_t batch = task_.step.batch;
  auto batches = prefetch::converge_sub_batches(
      batch, task_.budget, [&](std::size_t size) { return working_set(size); });
  while (batches && try_cut(*batches).refusal() != nullptr) {
    if (batches->size == 1) return std::nullopt;
    batches = prefetch::cut(batch, batches->size - 1);
  }
  return batches;
}

SubBatches MicroBatchSearch::choose() const {
  const bool by_need =
      task_.request.planner->sub_batch_rule() == prefetch::SubBatchRule::kWorkingSet;
  const auto batches =
      by_need ? by_working_set()
              : prefetch::search_sub_batches(task_.step.batch, [&](const SubBatches& candidate) {
                  return try_cut(candidate).times();
                });
  if (batches) return *batches;
  // The gradients that micro-batches keep may be more than what a whole batch needs.
  const Trial undivided = try_cut(prefetch::cut(task_.step.batch, task_.step.batch));
  if (undivided.refusal() == nullptr) return undivided.batches;
  const Trial divided = try_cut(prefetch::cut(task_.step.batch, 1));
  if (divided.refusal() == nullptr) return divided.batches;
  refuse(undivided.refusal()->smallest() < divided.refusal()->smallest() ? undivided : divided);
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

prefetch::SubBatches SubBatchChoice::resolve(std::size_t batch,
                                             const std::function<SubBatches()>& search) const {
  if (is_off()) return prefetch::cut(batch, batch);
  const auto size = parse_size(text);
  if (!size) return search();
  if (*size > batch) {
    throw um::Error{"a sub-batch of " + text + " images (--sub-batch " + text +
                    ") is more than the batch of " + std::to_string(batch) + "; give at most that"};
  }
  return prefetch::cut(batch, *size);
}

}  // namespace spillway
