#include "src/plan/plan_question.h"

#include <optional>
#include <utility>

#include "src/plan/budget.h"
#include "src/plan/predicted_step.h"

namespace spillway {
namespace {

using prefetch::Profile;
using um::Nanoseconds;

// Returns the time of the tasks, each once and without a wait.
Nanoseconds time_of_tasks(const Workload& workload, const Profile& profile) {
  return prefetch::compute_time(profile, prefetch::runs_in_order(workload.training().graph));
}

// Answers a question, workload by workload.
class Search {
 public:
  explicit Search(const PlanQuestion& question)
      : question_{question}, measured_{question.choice.within(question.budget)} {}

  PlanAnswer find() {
    best_ = plan(measured_);
    const StateChoice& choice = question_.choice;
    take_if_faster(choice.other(question_.budget));
    if (!best_) throw BudgetTooSmall{*refusal_};
    take_if_faster(choice.with_other_updates(*best_->workload));
    best_->planning = planning_;
    return *std::move(best_);
  }

 private:
  std::optional<PlanAnswer> plan(const Workload& workload) {
    const auto& [choice, profile, budget, request, evaluates] = question_;
    PlanAnswer planned{.workload = &workload,
                       .profile = profile_for(workload, measured_, profile),
                       .plans = {},
                       .training = {}};
    try {
      AnsweredPlans made = ask_for_plans(workload, planned.profile, budget, request, evaluates);
      planned.plans = std::move(made.plans);
      planned.training = std::move(made.training);
    } catch (const BudgetTooSmall& complaint) {
      if (!refusal_ || complaint.smallest() < refusal_->smallest()) refusal_.emplace(complaint);
      return std::nullopt;
    }
    planned.step = predicted_step(workload, planned.profile, planned.plans, request.memory,
                                  &planned.training.timeline);
    planning_ += planned.training.planning.value();
    return planned;
  }

  // True where the best plans wait for more than a fiftieth of their tasks' time.
  [[nodiscard]] bool may_gain() const {
    return 50 * best_->step > 51 * time_of_tasks(*best_->workload, best_->profile);
  }

  void take_if_faster(const Workload* other) {
    if (other == nullptr || (best_ && !may_gain())) return;
    std::optional<PlanAnswer> planned = plan(*other);
    if (planned && (!best_ || 20 * planned->step < 19 * best_->step)) best_ = std::move(planned);
  }

  const PlanQuestion& question_;
  const Workload& measured_;
  std::optional<PlanAnswer> best_;
  std::optional<BudgetTooSmall> refusal_;  // of the smallest budget of those that were refused
  Nanoseconds planning_{0};
};

}  // namespace

PlanAnswer answer(const PlanQuestion& question) { return Search{question}.find(); }

}  // namespace spillway
