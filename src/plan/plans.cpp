#include "src/plan/plans.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/files/machine.h"
#include "prefetch/placement/placed_step.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/planners/smallest_budget.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/verify/verify.h"
#include "src/plan/workload.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

using prefetch::Answer;
using prefetch::Infeasible;
using prefetch::Plan;
using prefetch::Profile;
using prefetch::TaskGraph;
using um::Bytes;

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

const prefetch::Planner& planner_of(const PlanRequest& request) {
  return request.memory == MemoryMode::kResident ? prefetch::find_planner("resident")
                                                 : *request.planner;
}

// Returns the near memory that a verified plan ever uses: its budget where it pages on demand. The
// copy mode's blocks have fixed places, and need the room between them.
Bytes near_use(const TaskGraph& graph, const Plan& plan, MemoryMode memory) {
  if (plan.residency == prefetch::Residency::kOnDemand) return plan.budget;
  const Bytes peak = std::get<prefetch::Verified>(prefetch::verify(graph, plan)).peak;
  if (memory != MemoryMode::kCopy) return peak;
  const auto arena = prefetch::arena_use(graph, plan);
  if (!arena || !arena->fits()) return plan.budget;
  return std::max(peak, plan.budget - arena->room + arena->extent);
}

bool needs_no_search(const PlanRequest& request) {
  return request.memory != MemoryMode::kResident &&
         prefetch::keeps_every_feasible_budget(request.planner->name());
}

// A whole run's plans: the training's and the evaluation's.
class RunPlanner {
 public:
  RunPlanner(const Workload& workload, const Profile& profile, const PlanRequest& request,
             bool evaluates = true)
      : workload_{workload},
        profile_{profile},
        evaluation_profile_{evaluation_profile(workload, profile)},
        request_{request},
        evaluates_{evaluates} {}

  [[nodiscard]] Answer train(Bytes budget) const {
    auto answer = try_plan_step(workload_.training_to_plan(), profile_, budget, request_);
    if (const auto* const refusal = std::get_if<BudgetTooSmall>(&answer)) refuse(*refusal, false);
    return std::get<Answer>(std::move(answer));
  }

  // `trains` says whether the training needs a planner, too.
  [[nodiscard]] Plan evaluate(Bytes budget, bool trains) const {
    const prefetch::Problem problem = evaluation(budget);
    auto answer = prefetch::ask(planner_of(request_), problem, {.fixes_places = false});
    if (const auto* const refusal = std::get_if<Infeasible>(&answer)) {
      const Bytes missing = um::saturating_difference(refusal->smallest_budget, problem.budget);
      refuse({problem.graph, refusal->task, budget, budget + missing}, !trains);
    }
    return std::get<Answer>(std::move(answer)).plan;
  }

  [[nodiscard]] bool can_train(Bytes budget) const {
    return has_plan(workload_.training_to_plan(), profile_, budget, request_);
  }
  [[nodiscard]] bool can_evaluate(Bytes budget) const {
    const prefetch::Problem problem = evaluation(budget);
    return prefetch::has_plan(planner_of(request_), problem, problem.budget);
  }

  // Says of `refusal` what works for the whole run; `evaluates_alone`: training needs no planner.
  [[noreturn]] void refuse(const BudgetTooSmall& refusal, bool evaluates_alone) const {
    if (needs_no_search(request_)) throw refusal;
    throw refusal.with(
        smallest_run_budget(workload_.training_to_plan(), refusal, [&](Bytes budget) {
          return (!evaluates_ || can_evaluate(budget)) && (evaluates_alone || can_train(budget));
        }));
  }

 private:
  [[nodiscard]] prefetch::Problem evaluation(Bytes budget) const {
    return make_problem(workload_.evaluation().graph, evaluation_profile_,
                        workload_.evaluation_budget(budget), workload_.page(), request_);
  }

  const Workload& workload_;
  const Profile& profile_;
  Profile evaluation_profile_;
  const PlanRequest& request_;
  bool evaluates_;
};

void settle_resident_budget(const Workload& workload, Bytes budget, Plans& plans) {
  plans.budget = resident_need(workload, plans);
  if (plans.budget > budget) {
    const auto [need, given] = um::texts_apart(plans.budget, budget);
    throw um::Error{"all of it resident needs " + need + ", more than " + given +
                    "; use --memory managed or copy, or a larger --budget"};
  }
}

// `plans` has the training's; `trains` says whether a planner made it.
Plans with_evaluation(Plans plans, const Workload& workload, const RunPlanner& planner,
                      MemoryMode memory, bool trains) {
  const Bytes budget = plans.budget;
  plans.evaluation = planner.evaluate(budget, trains);
  if (memory == MemoryMode::kResident) settle_resident_budget(workload, budget, plans);
  return plans;
}

// Complains about the plan of a file.
void expect_kept(const PlanOfFile& file, const StepToPlan& step, Bytes budget) {
  if (file.plan.budget <= step.budget(budget)) return;
  const auto [made_for, given] = um::texts_apart(file.plan.budget, budget);
  throw um::Error{file.name + " was made for a budget of " + made_for + ", more than the " + given +
                  " given here"};
}

}  // namespace

std::string_view to_string(MemoryMode mode) {
  switch (mode) {
    case MemoryMode::kManaged:
      return "managed";
    case MemoryMode::kCopy:
      return "copy";
    case MemoryMode::kResident:
      return "resident";
  }
  return "";
}

std::string_view to_string(StateRule rule) {
  if (rule == StateRule::kAuto) return "auto";
  return rule == StateRule::kNear ? "near" : "far";
}

std::string_view to_string(UpdateRule rule) {
  if (rule == UpdateRule::kAuto) return "auto";
  return rule == UpdateRule::kNear ? "near" : "far";
}

void expect_usable(const PlanOfFile& file, const TaskGraph& graph, Bytes page, MemoryMode memory) {
  const auto& [plan, name] = file;
  if (plan.page != page) {
    throw um::Error{name + " moves pages of " + um::to_string(plan.page) +
                    ", but this network's are " + um::to_string(page)};
  }
  if (memory == MemoryMode::kCopy &&
      (plan.residency == prefetch::Residency::kOnDemand || !moves_whole_blocks(plan, graph))) {
    throw um::Error{name +
                    " moves parts of blocks, which only unified memory can do; make a plan for "
                    "explicit copies with spillway plan --memory copy"};
  }
  const auto verdict = prefetch::verify(graph, plan);
  if (const auto* const violation = std::get_if<prefetch::Violation>(&verdict)) {
    throw prefetch::UnsoundPlan{name, violation->reason};
  }
}

prefetch::Problem make_problem(const TaskGraph& graph, const Profile& profile, Bytes budget,
                               Bytes page, const PlanRequest& request) {
  return {.graph = graph,
          .profile = profile,
          .budget = budget,
          .page = page,
          .chunk = prefetch::chunk_for(profile.link),
          .whole_blocks = request.memory == MemoryMode::kCopy,
          .may_recompute = request.may_recompute,
          .may_move = request.may_move};
}

void expect_feasible(const StepToPlan& step, Bytes budget) {
  if (const auto refusal = too_small(step, budget)) throw BudgetTooSmall{*refusal};
}

void expect_feasible(const Workload& workload, Bytes budget, const PlanRequest& request) {
  const auto refusal = too_small(workload.training_to_plan(), budget);
  if (!refusal) return;
  const Profile profile =
      prefetch::model_profile(workload.training().graph, prefetch::find_machine("host"));
  RunPlanner{workload, profile, request}.refuse(*refusal, false);
}

prefetch::Problem make_problem(const StepToPlan& step, const Profile& profile, Bytes budget,
                               const PlanRequest& request) {
  return make_problem(step.graph, profile, step.budget(budget), step.page, request);
}

std::variant<Answer, BudgetTooSmall> try_plan_step(const StepToPlan& step, const Profile& profile,
                                                   Bytes budget, const PlanRequest& request,
                                                   const prefetch::AskOptions& options) {
  if (auto refusal = too_small(step, budget)) return *std::move(refusal);
  auto answer =
      prefetch::ask(planner_of(request), make_problem(step, profile, budget, request), options);
  if (auto* const found = std::get_if<Answer>(&answer)) return std::move(*found);
  const auto& [task, smallest] = std::get<Infeasible>(answer);
  return BudgetTooSmall{step.graph, task, budget, smallest + (budget - step.budget(budget))};
}

bool has_plan(const StepToPlan& step, const Profile& profile, Bytes budget,
              const PlanRequest& request) {
  return !too_small(step, budget) &&
         prefetch::has_plan(planner_of(request), make_problem(step, profile, budget, request),
                            step.budget(budget));
}

Answer plan_step(const StepToPlan& step, const Profile& profile, Bytes budget,
                 const PlanRequest& request) {
  auto answer = try_plan_step(step, profile, budget, request);
  if (auto* const found = std::get_if<Answer>(&answer)) return std::move(*found);
  const auto& refusal = std::get<BudgetTooSmall>(answer);
  if (needs_no_search(request)) throw BudgetTooSmall{refusal};
  throw refusal.with(smallest_run_budget(
      step, refusal, [&](Bytes larger) { return has_plan(step, profile, larger, request); }));
}

AnsweredPlans ask_for_plans(const Workload& workload, const Profile& profile, Bytes budget,
                            const PlanRequest& request, bool evaluates) {
  const RunPlanner planner{workload, profile, request, evaluates};
  if (const auto refusal = too_small(workload.training_to_plan(), budget)) {
    planner.refuse(*refusal, false);
  }
  AnsweredPlans made{.plans = Plans{.budget = budget, .training = {}, .evaluation = {}},
                     .training = planner.train(budget)};
  made.plans.training = made.training.plan;
  if (evaluates) {
    made.plans = with_evaluation(std::move(made.plans), workload, planner, request.memory, true);
  }
  return made;
}

Plans make_plans(const Workload& workload, const Profile& profile, Bytes budget,
                 const PlanRequest& request) {
  return ask_for_plans(workload, profile, budget, request).plans;
}

Plans use_plan(PlanOfFile file, const Workload& workload, const Profile& profile, Bytes budget,
               const PlanRequest& request) {
  const StepToPlan step = workload.training_to_plan();
  expect_usable(file, step.graph, step.page, request.memory);
  if (request.memory != MemoryMode::kResident) expect_kept(file, step, budget);
  return with_evaluation(
      Plans{.budget = budget, .training = std::move(file.plan), .evaluation = {}}, workload,
      RunPlanner{workload, profile, request}, request.memory, false);
}

void take_what_is_used(Plans& plans, const Workload& workload, MemoryMode memory) {
  if (memory == MemoryMode::kResident) return;
  Bytes used = std::max(workload.need().smallest, workload.state_at_once());
  const auto add = [&](const TaskGraph& graph, const Plan& plan) {
    used = std::max(used, plans.budget - plan.budget + near_use(graph, plan, memory));
  };
  add(workload.training().graph, plans.training);
  add(workload.evaluation().graph, plans.evaluation);
  const Bytes spare =
      um::round_down(um::saturating_difference(plans.budget, used), workload.page());
  plans.budget -= spare;
  plans.training.budget -= spare;
  plans.evaluation.budget -= spare;
}

}  // namespace spillway
