#include "src/plan/plan_question.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/files/machine.h"
#include "prefetch/planners/answer.h"
#include "prefetch/planners/smallest_budget.h"
#include "prefetch/runtime/step_layout.h"
#include "src/plan/budget.h"
#include "src/plan/predicted_step.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

using prefetch::Answer;
using prefetch::Infeasible;
using prefetch::Profile;
using prefetch::TaskGraph;
using um::Bytes;
using um::Nanoseconds;

// Returns the near memory of a run of `plans` without moves: state, small tensors, and the slab.
Bytes resident_need(const Workload& workload, const Plans& plans) {
  Bytes state;
  Bytes buffer;
  Bytes slab;
  const auto add = [&](const prefetch::TaskGraph& graph, const prefetch::Plan& plan) {
    const prefetch::StepLayout layout{graph, plan};
    const Bytes own = prefetch::PinnedBlocks::buffer_size(layout.graph, layout.block_sizes);
    state = std::max(state, layout.block_sizes.pinned() - own);
    buffer = std::max(buffer, own);
    slab = std::max(slab, layout.placement.extent);
  };
  add(workload.training().graph, plans.training);
  add(workload.evaluation().graph, plans.evaluation);
  return workload.beside() + state + buffer + slab;
}

// Times of the evaluation step: its tasks are the forward tasks of the first micro-batch, by
// name, with as many samples; what is not there goes by the model.
Profile evaluation_profile(const Workload& workload, const Profile& training) {
  const TaskGraph& graph = workload.evaluation().graph;
  const TaskGraph& measured = workload.training().graph;
  Profile profile = prefetch::model_profile(graph, prefetch::find_machine("host"));
  profile.link = training.link;
  std::unordered_map<std::string, std::size_t> by_name;
  for (std::size_t t = 0; t < training.durations.size(); ++t) {
    by_name.emplace(measured.tasks[t].name, t);
  }
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const auto found = by_name.find(graph.tasks[t].name);
    if (found == by_name.end()) continue;
    const std::vector<um::Nanoseconds>& durations = training.durations[found->second];
    if (durations.size() == profile.durations[t].size()) profile.durations[t] = durations;
  }
  return profile;
}

// Plans the steps of one workload.
class RunPlanner {
 public:
  RunPlanner(const PlanQuestion& question, const Workload& workload)
      : question_{question},
        workload_{workload},
        profile_{profile_for(workload, question.steps, question.profile)},
        evaluation_profile_{question.evaluates ? evaluation_profile(workload, profile_)
                                               : Profile{}} {}

  PlanAnswer plan() {
    Answer training = train();
    PlanAnswer planned{
        .workload = &workload_,
        .profile = {},
        .plans = {.budget = budget(), .training = std::move(training.plan), .evaluation = {}},
        .peak = training.peak,
        .timeline = std::move(training.timeline),
        .planning = training.planning.value_or(Nanoseconds{0})};
    if (question_.evaluates) add_evaluation(planned.plans);
    planned.step =
        predicted_step(workload_, profile_, planned.plans, request().memory, &planned.timeline);
    planned.profile = std::move(profile_);
    return planned;
  }

  // Says of `refusal` what works for the whole run.
  [[noreturn]] void refuse(const BudgetTooSmall& refusal) const {
    if (request().keeps_every_feasible_budget()) throw refusal;
    throw refusal.with(
        smallest_run_budget(workload_.training_to_plan(), refusal, [&](Bytes budget) {
          return (!question_.evaluates || can_evaluate(budget)) &&
                 (question_.file || can_train(budget));
        }));
  }

 private:
  [[nodiscard]] Bytes budget() const { return question_.budget; }
  [[nodiscard]] const PlanRequest& request() const { return question_.request; }

  [[nodiscard]] Answer train() const {
    const StepToPlan step = workload_.training_to_plan();
    if (question_.file) return use_plan(*question_.file, step, profile_, budget(), request());
    auto answer = try_plan_step(step, profile_, budget(), request());
    if (const auto* const refusal = std::get_if<BudgetTooSmall>(&answer)) refuse(*refusal);
    return std::get<Answer>(std::move(answer));
  }

  void add_evaluation(Plans& plans) const {
    const prefetch::Problem problem = evaluation(budget());
    auto answer = prefetch::ask(request().asked(), problem, {.fixes_places = false});
    if (const auto* const refusal = std::get_if<Infeasible>(&answer)) {
      const Bytes missing = um::saturating_difference(refusal->smallest_budget, problem.budget);
      refuse({problem.graph, refusal->task, budget(), budget() + missing});
    }
    plans.evaluation = std::get<Answer>(std::move(answer)).plan;
    if (request().memory == MemoryMode::kResident) settle_resident_budget(plans);
  }

  void settle_resident_budget(Plans& plans) const {
    plans.budget = resident_need(workload_, plans);
    if (plans.budget <= budget()) return;
    const auto [need, given] = um::texts_apart(plans.budget, budget());
    throw um::Error{"all of it resident needs " + need + ", more than " + given +
                    "; use --memory managed or copy, or a larger --budget"};
  }

  [[nodiscard]] bool can_train(Bytes budget) const {
    return has_plan(workload_.training_to_plan(), profile_, budget, request());
  }
  [[nodiscard]] bool can_evaluate(Bytes budget) const {
    const prefetch::Problem problem = evaluation(budget);
    return prefetch::has_plan(request().asked(), problem, problem.budget);
  }
  [[nodiscard]] prefetch::Problem evaluation(Bytes budget) const {
    return make_problem(workload_.evaluation().graph, evaluation_profile_,
                        workload_.evaluation_budget(budget), workload_.page(), request());
  }

  const PlanQuestion& question_;
  const Workload& workload_;
  Profile profile_;
  Profile evaluation_profile_;
};

// Returns the time of the tasks, each once and without a wait.
Nanoseconds time_of_tasks(const Workload& workload, const Profile& profile) {
  return prefetch::compute_time(profile, prefetch::runs_in_order(workload.training().graph));
}

// Answers a question, workload by workload.
class Search {
 public:
  explicit Search(const PlanQuestion& question) : question_{question} {}

  PlanAnswer find() {
    best_ = plan(question_.steps);
    const StateChoice* const choice = question_.file ? nullptr : question_.choice;
    if (choice != nullptr) take_if_faster(choice->other(question_.budget));
    if (!best_) throw BudgetTooSmall{*refusal_};
    if (choice != nullptr) take_if_faster(choice->with_other_updates(*best_->workload));
    best_->planning = planning_;
    return *std::move(best_);
  }

 private:
  std::optional<PlanAnswer> plan(const Workload& workload) {
    try {
      PlanAnswer planned = RunPlanner{question_, workload}.plan();
      planning_ += planned.planning;
      return planned;
    } catch (const BudgetTooSmall& complaint) {
      if (!refusal_ || complaint.smallest() < refusal_->smallest()) refusal_.emplace(complaint);
      return std::nullopt;
    }
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
  std::optional<PlanAnswer> best_;
  std::optional<BudgetTooSmall> refusal_;  // of the smallest budget of those that were refused
  Nanoseconds planning_{0};
};

}  // namespace

PlanAnswer answer(const PlanQuestion& question) { return Search{question}.find(); }

void expect_feasible(const Workload& workload, Bytes budget, const PlanRequest& request) {
  const auto refusal = too_small(workload.training_to_plan(), budget);
  if (!refusal) return;
  const PlanQuestion question{
      .steps = workload,
      .profile = prefetch::model_profile(workload.training().graph, prefetch::find_machine("host")),
      .budget = budget,
      .request = request};
  RunPlanner{question, workload}.refuse(*refusal);
}

}  // namespace spillway
