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
  VariantChoice choice;  ///< VariedStep::leanest() if no choice keeps the budget
  ChosenStep step;       ///< of that choice
  std::variant<Answer, Infeasible> answer;
};

/// Chooses the variants of a step together with its plan: the choice whose plan by `planner` is the
/// shortest in simulation. `like` is the problem of any choice; all have its budget and its page.
///
/// Up to 32 choices are all planned, but for those of which a lower bound is not shorter. Of more
/// choices, searches from the fastest variants, the first, the leanest and others that are alike in
/// all groups: changes ranges of alike groups, halved again and again, then groups at random. Short
/// runs of joint_search() judge these. Then plans the best few, and the first variants: the plan is
/// never longer than theirs. Counts evaluations, and looks at no clock. Throws: as ask().
[[nodiscard]] VariedAnswer plan_varied(const Planner& planner, const VariedStep& step,
                                       const StepOfChoice& make, const Problem& like,
                                       const AskOptions& options = {});

}  // namespace spillway::prefetch
