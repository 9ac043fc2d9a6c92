#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/plan/bucket_choice.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/step/sub_step.h"
#include "src/train/parts/rank_training.h"
#include "um/bytes.h"

namespace spillway {

/// The plans of the checkpoint that ranks go on from: the first one's, whose steps may have been
/// others, of another number of ranks. Where some ranks have more shards than others they are not
/// for all.
class KeptPlans {
 public:
  KeptPlans() = default;  ///< there are none
  /// Has the first rank read `files`, of each training step in order, for all of them, which all
  /// call this. Throws: on all of them, um::Error when one cannot be read.
  KeptPlans(const RankOptions& ranks, const std::vector<std::string>& files);

  [[nodiscard]] bool are_there() const { return !plans_.empty(); }

  /// Them, where they are plans of `workload` that keep `budget`, on each rank: as use_plans().
  /// Nothing on all ranks where they are not so on one. All ranks call it.
  [[nodiscard]] std::optional<Plans> use(const RankOptions& ranks, const Workload& workload,
                                         std::span<const prefetch::Profile> profiles,
                                         um::Bytes budget, const PlanRequest& request) const;

  /// `profiles` of the steps of `workload` by which planners keep each task's algorithm, where
  /// near memory lets them: all others take a thousand times as long.
  [[nodiscard]] std::vector<prefetch::Profile> favour(
      const Workload& workload, std::vector<prefetch::Profile> profiles) const;

  /// Says of new `plans` what they keep; empty where there was no choice.
  [[nodiscard]] std::string departure(const Workload& workload,
                                      std::span<const prefetch::Plan> plans) const;

 private:
  using Algorithms = std::unordered_map<std::string, std::string>;  // by task
  struct Kept {
    std::string name;
    std::string text;
    Algorithms algorithms;
  };
  [[nodiscard]] std::optional<std::uint32_t> kept_algorithm(const Workload& workload,
                                                            std::size_t step,
                                                            const prefetch::Task& task) const;
  [[nodiscard]] std::vector<PlanOfFile> read(const Workload& workload) const;

  std::vector<Kept> plans_;
};

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
