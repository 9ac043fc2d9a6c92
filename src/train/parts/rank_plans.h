#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/plan/bucket_choice.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/step/sub_step.h"
#include "src/train/parts/rank_training.h"
#include "um/bytes.h"

namespace spillway {

/// Buckets of gradients, and the steps of a rank with them.
struct ChosenBuckets {
  prefetch::BucketRule rule;
  std::unique_ptr<const Workload> near;     ///< with its state near; null: as it was
  std::vector<prefetch::Profile> profiles;  ///< of `near`, where that is there
};

/// The buckets that all ranks use: those of choose_buckets() on the first rank, beside those of the
/// options, where all ranks have room for them. `near` are this rank's steps with state near and
/// the buckets of the options; `timed` are the same, with state as it was measured. All ranks call
/// this. Throws: what Communicator throws.
[[nodiscard]] ChosenBuckets choose_rank_buckets(const RankOptions& ranks, const Workload& near,
                                                const TimedSteps& timed,
                                                const SizeModel& size_model, um::Bytes budget,
                                                const PlanRequest& request);

/// Gives all ranks the first one's times of the tasks that it has, by name, and of its link, so
/// that ranks with the same steps make the same plans; and to the last of the steps what its
/// exchanges take, and tasks beside them, as measured now between the ranks: for tasks within
/// `limit` of near memory, beside which exchanges take some mebibytes; all is given back.
/// `profiles` are those of `steps`, on the same kind of machine. Returns what was measured; nothing
/// where there is one rank. Throws: what Communicator throws; um::OutOfMemory.
std::optional<prefetch::Interconnect> share_profiles(const RankOptions& ranks,
                                                     ExecutionContext& context, um::Bytes limit,
                                                     std::span<const RepeatedStep> steps,
                                                     std::vector<prefetch::Profile>& profiles);

}  // namespace spillway
