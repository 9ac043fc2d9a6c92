#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "prefetch/planner.h"
#include "src/plan/sub_batch_plans.h"
#include "um/bytes.h"

namespace spillway::cli {

/// What `spillway plan` says about a batch in sub-batches: the keys of a batch in one, with times
/// and moved bytes summed over the whole batch, the peak the highest, and what the run needs.
/// `subject` is what is planned, for messages; `planning` is how long that took. Throws: um::Error
/// if a plan does not verify.
[[nodiscard]] nlohmann::json figures_of(std::span<const PlannedSubStep> steps,
                                        const SubBatchPlanner& planner,
                                        const prefetch::NearNeed& need, const std::string& subject,
                                        um::Nanoseconds planning);

}  // namespace spillway::cli
