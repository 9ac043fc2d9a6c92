#pragma once

#include <string>

#include "src/cli/plan/plan_figures.h"
#include "src/cli/plan/plan_subject.h"
#include "src/plan/plans.h"
#include "um/bytes.h"

namespace spillway::cli {

/// What is planned, for messages: "vgg16 at batch 256 on v100".
[[nodiscard]] std::string description(const PlanSubject& subject);

/// The plan of a whole batch within `budget`, verified and simulated, with state near or far,
/// whichever is faster; `subject` is then what was planned. Throws: BudgetTooSmall.
[[nodiscard]] Planned plan_best(PlanSubject& subject, um::Bytes budget, const PlanRequest& request);

}  // namespace spillway::cli
