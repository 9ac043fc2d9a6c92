#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "prefetch/plan.h"
#include "prefetch/planner.h"
#include "prefetch/planners/answer.h"
#include "prefetch/profile.h"
#include "src/plan/budget.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// Where the tensors of a step live.
enum class MemoryMode {
  kManaged,  ///< unified memory driven by hints
  kCopy,     ///< an arena and explicit copies
  kResident  ///< all in near memory
};

[[nodiscard]] std::string_view to_string(MemoryMode mode);

/// Where a network's state, its parameters and the optimizer's numbers, may be.
enum class StateRule : std::uint8_t {
  kAuto,  ///< near, unless the budget is too small for that or plans that move it are much faster
  kNear,  ///< always near
  kFar    ///< far while no task needs it, as plans say
};

/// Which side updates state that is far: weights with the optimizer's numbers.
enum class UpdateRule : std::uint8_t {
  kAuto,  ///< near, unless the far side is much faster by the plans
  kNear,  ///< near, for which all of it comes
  kFar    ///< the processor beside far memory, as far as it may (prefetch::far_updatable())
};

/// Returns "auto", "near" or "far".
[[nodiscard]] std::string_view to_string(StateRule rule);
[[nodiscard]] std::string_view to_string(UpdateRule rule);

/// How the plans of a run are to be made.
struct PlanRequest {
  MemoryMode memory = MemoryMode::kManaged;
  const prefetch::Planner* planner = nullptr;  ///< not looked at when all stays resident
  bool may_recompute = true;
  bool may_move = true;                   ///< false: plans only order and recompute
  StateRule state = StateRule::kAuto;     ///< for those who choose: StateChoice
  UpdateRule update = UpdateRule::kAuto;  ///< likewise

  /// The planner that is asked: `planner`, or in resident mode the one that moves nothing.
  [[nodiscard]] const prefetch::Planner& asked() const;
  /// Whether the asked planner has a plan for every budget from a step's smallest need on.
  [[nodiscard]] bool keeps_every_feasible_budget() const;
};

/// Returns the problem of one step, to which the run leaves `budget`.
[[nodiscard]] prefetch::Problem make_problem(const prefetch::TaskGraph& graph,
                                             const prefetch::Profile& profile, um::Bytes budget,
                                             um::Bytes page, const PlanRequest& request);

/// The plans of a run's steps, verified.
struct Plans {
  um::Bytes budget;  ///< of the whole run
  prefetch::Plan training;
  prefetch::Plan evaluation;
};

/// A plan that a file holds, and the file's name, for complaints.
struct PlanOfFile {
  prefetch::Plan plan;
  std::string name;
};

/// Throws: um::Error when the plan does not verify, moves other pages than the step's, or cannot be
/// executed in the memory mode.
void expect_usable(const PlanOfFile& file, const prefetch::TaskGraph& graph, um::Bytes page,
                   MemoryMode memory);

/// Throws: BudgetTooSmall when no plan can keep `budget`, which is the whole run's.
void expect_feasible(const StepToPlan& step, um::Bytes budget);

/// Returns the problem of one step in a run that has `budget`.
[[nodiscard]] prefetch::Problem make_problem(const StepToPlan& step,
                                             const prefetch::Profile& profile, um::Bytes budget,
                                             const PlanRequest& request);

/// Plans one step of a run that has `budget`. A refusal is of the whole run, with the planner's own
/// estimate of the smallest budget. Throws: prefetch::UnsoundPlan.
[[nodiscard]] std::variant<prefetch::Answer, BudgetTooSmall> try_plan_step(
    const StepToPlan& step, const prefetch::Profile& profile, um::Bytes budget,
    const PlanRequest& request, const prefetch::AskOptions& options = {});

/// Returns whether there is a plan of one step of a run that has `budget`.
[[nodiscard]] bool has_plan(const StepToPlan& step, const prefetch::Profile& profile,
                            um::Bytes budget, const PlanRequest& request);

/// As try_plan_step(), and searches for the smallest budget that works if no plan keeps this one.
/// Throws: BudgetTooSmall; prefetch::UnsoundPlan.
[[nodiscard]] prefetch::Answer plan_step(const StepToPlan& step, const prefetch::Profile& profile,
                                         um::Bytes budget, const PlanRequest& request);

/// Answers one step of a run that has `budget` with the plan of a file. Throws: um::Error when the
/// plan was made for a larger budget; as expect_feasible() and expect_usable().
[[nodiscard]] prefetch::Answer use_plan(PlanOfFile file, const StepToPlan& step,
                                        const prefetch::Profile& profile, um::Bytes budget,
                                        const PlanRequest& request);

/// Lowers the budgets of `plans` to the near memory that they use, where they have more. Plans that
/// page on demand keep theirs.
void take_what_is_used(Plans& plans, const Workload& workload, MemoryMode memory);

}  // namespace spillway
