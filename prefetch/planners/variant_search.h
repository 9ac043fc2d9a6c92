#pragma once

#include <functional>
#include <memory>
#include <variant>

#include "prefetch/planner.h"
#include "prefetch/planners/answer.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "prefetch/varied_step.h"

namespace spillway::prefetch {

/// The step of a choice of variants as it is planned.
struct ChosenStep {
  std::unique_ptr<const TaskGraph> graph;
  Profile profile;
};

/// Makes the step of a choice.
using StepOfChoice = std::function<ChosenStep(const VariantChoice&)>;

/// A choice of variants, and what planning its step answered.
struct VariedAnswer {
  VariantChoice choice;  ///< VariedStep::leanest() if no choice that was tried keeps the budget
  ChosenStep step;       ///< of that choice
  std::variant<Answer, Infeasible> answer;
};

/// Chooses the variants of a step together with its plan by `planner`: those with the shortest plan
/// in simulation. `like` is the problem of any choice; all have its budget and its page.
///
/// Plans all choices if there are at most 32, except those with a lower bound that is not shorter.
/// Otherwise searches from the fastest variants, the first, the leanest, and others that are alike
/// in all groups: changes ranges of alike groups, halved again and again, then groups at random. A
/// short joint_search() judges each. Then plans the best few, and the first variants: the plan is
/// never longer than theirs. Counts evaluations, and looks at no clock. Throws: as ask().
[[nodiscard]] VariedAnswer plan_varied(const Planner& planner, const VariedStep& step,
                                       const StepOfChoice& make, const Problem& like,
                                       const AskOptions& options = {});

}  // namespace spillway::prefetch
