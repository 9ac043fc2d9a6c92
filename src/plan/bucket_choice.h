#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// Returns the time of a step with gradients in such buckets, by the plan that is made for the
/// request; nullopt if there is none within the budget.
using TimeOfBuckets = std::function<std::optional<um::Nanoseconds>(const prefetch::BucketRule& rule,
                                                                   const PlanRequest& request)>;

/// The rules that are worth a try for the gradients of `graph`, each way to put them into buckets
/// once: `usual` first; then buckets of 1, 2, 5, 10, 25, 50 and 100 MiB and one of all, where the
/// first has 1 MiB or as much as the others. Throws: um::Error where there are no gradients.
[[nodiscard]] std::vector<prefetch::BucketRule> bucket_candidates(
    const prefetch::TaskGraph& graph, const prefetch::BucketRule& usual = {});

/// The candidate whose step is shortest, of equal ones that with the fewest buckets. All of them
/// are timed by plans of `capacity`, which is fast; then the best one (for `joint` the best two)
/// and `usual` by those of the planner of `request`, so that its step is never longer than with
/// `usual`. A planner that leaves state near has it timed near by `capacity`, too. Where nothing
/// has a plan, `usual`. `graph` is the step, with exchanges or before it gets any. Throws:
/// likewise.
[[nodiscard]] prefetch::BucketRule choose_buckets(const prefetch::TaskGraph& graph,
                                                  const prefetch::BucketRule& usual,
                                                  const PlanRequest& request,
                                                  const TimeOfBuckets& time_of);

/// The steps of one of several ranks, how long the training's tasks take, and what it exchanges
/// gradients over.
struct TimedSteps {
  const Workload& workload;
  const prefetch::Profile& profile;
  const prefetch::Interconnect& interconnect;
};

/// The profile of the training step of `workload`: that of `timed` with other buckets, or with
/// other state that may be far.
[[nodiscard]] prefetch::Profile profile_of(const Workload& workload, const TimedSteps& timed);

/// How long a batch takes by the plans of `near`, which are the steps of `timed` with state near
/// and other buckets; nothing where no plan keeps the budget.
[[nodiscard]] std::optional<um::Nanoseconds> planned_time(const Workload& near,
                                                          const TimedSteps& timed,
                                                          const SizeModel& size_model,
                                                          um::Bytes budget,
                                                          const PlanRequest& request);

}  // namespace spillway
