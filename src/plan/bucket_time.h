#pragma once

#include <optional>
#include <span>
#include <vector>

#include "prefetch/interconnect.h"
#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "um/bytes.h"

namespace spillway {

/// Steps of one of several ranks, how long their tasks take, and what the last of them exchanges
/// gradients over.
struct TimedSteps {
  const Workload& workload;
  std::span<const prefetch::Profile> profiles;
  const prefetch::Interconnect& interconnect;
};

/// The profiles of the training steps of `workload`: those of `timed` with other buckets, or with
/// other state that may be far.
[[nodiscard]] std::vector<prefetch::Profile> profiles_of(const Workload& workload,
                                                         const TimedSteps& timed);

/// How long a batch takes by the plans of `near`, which are the steps of `timed` with state near
/// and other buckets; nothing where no plan keeps the budget.
[[nodiscard]] std::optional<um::Nanoseconds> planned_time(const Workload& near,
                                                          const TimedSteps& timed,
                                                          const SizeModel& size_model,
                                                          um::Bytes budget,
                                                          const PlanRequest& request);

}  // namespace spillway
