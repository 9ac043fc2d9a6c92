#pragma once

#include <memory>
#include <optional>

#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/plan/bucket_choice.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/program/step.h"
#include "src/train/data_parallel/rank_options.h"
#include "um/bytes.h"

namespace spillway {

/// Buckets of gradients, and the steps of a rank with them.
struct ChosenBuckets {
  prefetch::BucketRule rule;
  std::unique_ptr<const Workload> near;  ///< with its state near; null: as it was
  prefetch::Profile profile;             ///< of `near`, where that is there
};

/// Returns the buckets that all ranks use: those of choose_buckets() on rank zero where all ranks
/// have room for them, else those of the options. `near` are this rank's steps with state near and
/// the buckets of the options; `timed` are the same, with state as it was measured. All ranks call
/// this. Throws: what Communicator throws.
[[nodiscard]] ChosenBuckets choose_rank_buckets(const RankOptions& ranks, const Workload& near,
                                                const TimedSteps& timed,
                                                const SizeModel& size_model, um::Bytes budget,
                                                const PlanRequest& request);

/// Broadcasts rank zero's times of tasks, by name, and of its link, so that ranks with the same
/// steps make the same plans. Measures exchanges between the ranks, and tasks beside them within
/// `limit` of near memory; they take some mebibytes, which are freed again. `profile` is that of
/// `step`, on the same kind of machine. Returns the measured interconnect; nullopt for a single
/// rank. Throws: what Communicator throws; um::OutOfMemory.
std::optional<prefetch::Interconnect> broadcast_profile(const RankOptions& ranks,
                                                        ExecutionContext& context, um::Bytes limit,
                                                        const Step& step,
                                                        prefetch::Profile& profile);

}  // namespace spillway
