#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "src/sub_batch_plans.h"
#include "um/nanoseconds.h"

namespace spillway::cli {

/// What `spillway plan` says about a batch in sub-batches: the keys of a batch in one, with times
/// and moved bytes summed over the whole batch, the peak the highest, and what a budget has to be
/// for one sub-batch. `planning` is how long planning took.
[[nodiscard]] nlohmann::json figures_of(std::span<const PlannedSubStep> steps,
                                        const SubBatchPlanner& planner, um::Nanoseconds planning);

}  // namespace spillway::cli
