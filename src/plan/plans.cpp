#include "src/plan/plans.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "prefetch/placement/placed_step.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/planners/smallest_budget.h"
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

const prefetch::Planner& PlanRequest::asked() const {
  return memory == MemoryMode::kResident ? prefetch::find_planner("resident") : *planner;
}

bool PlanRequest::keeps_every_feasible_budget() const {
  return memory != MemoryMode::kResident && prefetch::keeps_every_feasible_budget(planner->name());
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

prefetch::Problem make_problem(const StepToPlan& step, const Profile& profile, Bytes budget,
                               const PlanRequest& request) {
  return make_problem(step.graph, profile, step.budget(budget), step.page, request);
}

std::variant<Answer, BudgetTooSmall> try_plan_step(const StepToPlan& step, const Profile& profile,
                                                   Bytes budget, const PlanRequest& request,
                                                   const prefetch::AskOptions& options) {
  if (auto refusal = too_small(step, budget)) return *std::move(refusal);
  auto answer =
      prefetch::ask(request.asked(), make_problem(step, profile, budget, request), options);
  if (auto* const found = std::get_if<Answer>(&answer)) return std::move(*found);
  const auto& [task, smallest] = std::get<Infeasible>(answer);
  return BudgetTooSmall{step.graph, task, budget, smallest + (budget - step.budget(budget))};
}

bool has_plan(const StepToPlan& step, const Profile& profile, Bytes budget,
              const PlanRequest& request) {
  return !too_small(step, budget) &&
         prefetch::has_plan(request.asked(), make_problem(step, profile, budget, request),
                            step.budget(budget));
}

Answer plan_step(const StepToPlan& step, const Profile& profile, Bytes budget,
                 const PlanRequest& request) {
  auto answer = try_plan_step(step, profile, budget, request);
  if (auto* const found = std::get_if<Answer>(&answer)) return std::move(*found);
  const auto& refusal = std::get<BudgetTooSmall>(answer);
  if (request.keeps_every_feasible_budget()) throw BudgetTooSmall{refusal};
  throw refusal.with(smallest_run_budget(
      step, refusal, [&](Bytes larger) { return has_plan(step, profile, larger, request); }));
}

Answer use_plan(PlanOfFile file, const StepToPlan& step, const Profile& profile, Bytes budget,
                const PlanRequest& request) {
  expect_usable(file, step.graph, step.page, request.memory);
  if (request.memory != MemoryMode::kResident) expect_kept(file, step, budget);
  expect_feasible(step, budget);
  return prefetch::answer_with(std::move(file.plan), file.name,
                               make_problem(step, profile, budget, request));
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
