#pragma once

#include "prefetch/gradient_exchange.h"
#include "src/cli/plan/plan_subject.h"
#include "src/cli/plan/rank_flags.h"
#include "src/plan/plans.h"
#include "um/bytes.h"

namespace spillway::cli {

/// choose_buckets() for the ranks of `one`, the step of one processor alone, beside the usual
/// buckets: the step of each rule is planned within `budget`, as plan_best() does.
[[nodiscard]] prefetch::BucketRule planned_buckets(const PlanSubject& one, const RankFlags& ranks,
                                                   um::Bytes budget, const PlanRequest& request);

}  // namespace spillway::cli
