#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/planner.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/plan/file_plans.h"
#include "src/plan/plans.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"
#include "src/run/step_times.h"
#include "src/train/checkpoint/kept_plans.h"
#include "src/train/data_parallel/rank_plans.h"
#include "src/train/trainer_options.h"
#include "um/bytes.h"

namespace spillway {

/// The steps of a training as they are to run within its budget: what they are, how long their
/// tasks take, and their plans.
class PlannedSteps {
 public:
  /// Builds the steps. Options and context must outlive it. Throws: um::Error, one sentence for the
  /// user.
  PlannedSteps(const TrainerOptions& options, ExecutionContext& context, TrainerEvents events,
               std::stop_token stop);

  /// Cuts the batch as the options say.
  void cut_batch();
  /// Measures and plans; where `file` is a plan, reads this instead. A training that goes on uses
  /// the plans that are `kept`, or makes new ones with their algorithms, and warns. Where
  /// plans or profiles of files are of images that are floats, they become that. To be called once.
  /// Throws: um::Error, one sentence for the user; Interrupted.
  void plan(const std::string& file, const KeptPlans& kept = {});

  [[nodiscard]] const Workload& workload() const { return *workload_; }
  /// The mode that was asked for, or else the one that suits the device.
  [[nodiscard]] MemoryMode memory() const { return request_.memory; }
  /// Far memory, link and paging: as asked for, except a far file because RAM has no room.
  [[nodiscard]] const um::ManagedOptions& space() const { return space_; }
  /// Whether far memory is in a file because RAM has no room for it.
  [[nodiscard]] bool has_spilled() const {
    return space_.far.file != options_.memory.space.far.file;
  }
  /// What they need in near memory, wherever their state is best.
  [[nodiscard]] prefetch::NearNeed need() const { return choice_->need(); }
  [[nodiscard]] const prefetch::Profile& profile() const { return profile_; }
  /// Whether these are of this machine or of a file; else no plan depends on them.
  [[nodiscard]] bool are_timed() const { return times_.are_timed(); }
  /// When they were measured, if they were kept by an earlier run: "2026-11-29 19:10 UTC".
  [[nodiscard]] const std::optional<std::string>& kept_since() const { return times_.kept_since(); }
  /// Has the next run measure them anew. Returns whether they were kept.
  [[nodiscard]] bool forget_profiles() const { return times_.forget(); }
  [[nodiscard]] const Plans& plans() const { return plans_; }
  /// Returns the settings that a checkpoint keeps, without the bytes of the budget.
  [[nodiscard]] KeptSettings settings() const;
  /// The buckets in which ranks exchange gradients.
  [[nodiscard]] const prefetch::BucketRule& buckets() const { return buckets_; }

 private:
  [[nodiscard]] MicroBatches first_cut() const;
  void build(const StepOptions& step, const MicroBatches& batches);
  [[nodiscard]] PlanRequest state_request() const;
  void choose_state();
  [[nodiscard]] um::Bytes limit_of(const KeptPlans& kept) const;
  [[nodiscard]] bool use_kept(const KeptPlans& kept, um::Bytes limit);
  [[nodiscard]] bool use_kept(const KeptPlans& kept, const Workload& steps, um::Bytes limit);
  void choose_buckets(const prefetch::Interconnect& interconnect, um::Bytes limit);
  void take_floats_for(const std::string& file, const KeptPlans& kept);
  [[nodiscard]] bool is_reference() const;
  void refer_to_need();
  void build_with(bool has_byte_images);
  [[nodiscard]] um::Bytes available_memory() const;
  [[nodiscard]] prefetch::NearNeed need_for(const prefetch::Plan* plan) const;
  [[nodiscard]] um::Bytes find_limit(const prefetch::Plan* plan) const;
  void plan_anew(um::Bytes limit, const KeptPlans& kept, const KeptPlans::Difference& difference);
  void plan_within(um::Bytes limit, const std::optional<PlanOfFile>& file, const KeptPlans& kept);
  [[nodiscard]] bool may_spill() const;
  [[nodiscard]] prefetch::TaskGraph profiled_step() const;
  [[nodiscard]] std::optional<prefetch::Profile> find_profile(um::Bytes limit);

  const TrainerOptions& options_;
  ExecutionContext& context_;
  TrainerEvents events_;
  std::stop_token stop_;
  PlanRequest request_;
  um::ManagedOptions space_;
  prefetch::BucketRule buckets_;
  StepTimes times_;
  std::unique_ptr<const Workload> near_;  // of the whole batch until that is cut
  std::optional<StateChoice> choice_;
  const Workload* workload_ = nullptr;  // the one that runs
  prefetch::NearNeed whole_need_;       // what budgets are relative to
  prefetch::Profile profile_;           // of the training step
  Plans plans_;
};

}  // namespace spillway
