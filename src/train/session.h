#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "prefetch/placement/placed_step.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "src/io/data/batch_loader.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/run/batch_stage.h"
#include "src/run/executor.h"
#include "src/run/step_space.h"
#include "src/train/checkpoint/state.h"
#include "src/train/data_parallel/rank_options.h"
#include "src/train/data_parallel/rank_step.h"
#include "src/train/data_parallel/state_slices.h"
#include "um/device.h"
#include "um/memory.h"
#include "um/options.h"

namespace spillway {

/// One step as it went.
struct StepReport {
  float loss = 0;           ///< training: mean over the batch; evaluation: sum
  float correct = 0;        ///< predictions that were right
  std::size_t counted = 0;  ///< labels that count, of a training step
  /// Of an evaluation, in the order of the batch; empty where a sample has several labels.
  std::vector<JudgedSample> judged;
  std::vector<float> logits;  ///< likewise, (N, C), where StepOptions::gives_logits
  float learning_rate = 0;
  um::Nanoseconds duration{0};
  um::Nanoseconds data_wait{0};  ///< before it, for its batch to be loaded
  /// Of it, time in which no kernel ran; where the step's times were taken.
  std::optional<um::Nanoseconds> stalled;
  um::Counters counters;  ///< what the step did to managed or copied memory
  um::Bytes near_peak;    ///< most near memory in use, everything included
  std::string problem;    ///< what the user should know of it; mostly nothing
};

/// A network in memory, ready to train: state, near and far memory within a budget, and the
/// executors of its steps.
///
/// Thread safety: none.
class Session {
 public:
  /// All arguments but `stop` and `ranks` must outlive it, and so must the communicators. `space`
  /// gives far memory, link and paging. When `stop` is requested the step under way throws
  /// Interrupted after the task under way: weights are updated in part. One of several ranks
  /// trains its own micro-batches, and `workload` has these. Throws: um::Error; um::OutOfMemory.
  Session(ExecutionContext& context, const Workload& workload, const Plans& plans, MemoryMode mode,
          const um::ManagedOptions& space, const std::stop_token& stop = {},
          const RankOptions& ranks = {});

  /// Loads a batch, goes forward and backward, updates the weights. Each sample with a label
  /// counts for as much, however the batch is cut. On one of several ranks, `context` has
  /// this one's samples, and the report is of all. After an exception nothing but destruction is
  /// allowed.
  StepReport train(const StepContext& context);
  /// Loads evaluation_batch() samples and goes forward.
  StepReport evaluate(const StepContext& context);
  /// Returns when no StepContext::next_batch is read any more.
  void settle() noexcept { stage_.settle(); }
  /// Samples of a step, of all ranks.
  [[nodiscard]] std::size_t batch() const { return batches_.batch; }
  /// The part of each batch that train() loads; nullopt: all of it.
  [[nodiscard]] std::optional<BatchPart> own_samples() const;
  [[nodiscard]] std::size_t evaluation_batch() const { return evaluation_batch_; }

  /// Whether batches are to have Batch::bytes.
  [[nodiscard]] bool loads_bytes() const { return loads_bytes_; }
  /// Where batches are best, to be loaded from; outlives the session.
  [[nodiscard]] std::pmr::memory_resource& batch_memory() const { return batch_memory_; }

  [[nodiscard]] State& state() { return state_; }
  /// Calls `work`, which may read or write all of state(), on rank zero. The other ranks meanwhile
  /// send and receive their slices of it. All ranks call this. Throws: as on_rank_zero().
  void with_whole_state(const std::function<void()>& work) {
    slices_.on_rank_zero(work, [this] { state_.follow(); });
  }
  /// False in a step that has thrown: the state that moves is lost then.
  [[nodiscard]] bool is_between_steps() const { return !is_in_step_; }
  /// When everything happened in the last training step whose times were taken
  /// (StepResult::timeline).
  [[nodiscard]] const prefetch::Timeline& timeline() const { return timeline_; }
  /// The most near memory in use at any time so far.
  [[nodiscard]] um::Bytes near_peak() const { return near_peak_; }
  /// In copy mode: how the training step uses its arena.
  [[nodiscard]] std::optional<prefetch::ArenaUse> arena_use() const {
    return space_.arena_use(layouts_.front());
  }
  /// The most bytes that its plans have in far memory.
  [[nodiscard]] um::Bytes far_memory() const { return far_memory_; }
  /// "unified memory (uffd_move, 2 MiB pages, far RAM)"
  [[nodiscard]] std::string memory_description() const { return space_.description(); }

 private:
  // One of the steps with everything it needs to run.
  struct Runner {
    Runner(const Step& step, const prefetch::StepLayout& layout, Session& session,
           ExecutionContext& context, const std::stop_token& stop, bool may_repeat);
    prefetch::PinnedBlocks pinned;
    std::unique_ptr<prefetch::StepMemory> memory;
    std::optional<LoadBatch> staged_load;  // nullopt: its batch is not staged
    Executor executor;
  };

  struct Finished {
    StepReport report;
    StepResult result;
  };

  Finished run(Runner& runner, const StepContext& context);
  [[nodiscard]] std::vector<std::byte*> addresses(const Step& step) const;
  void give_state_to(prefetch::StepMemory& memory);
  [[nodiscard]] std::vector<const prefetch::StepLayout*> layouts() const;

  bool loads_bytes_;
  std::pmr::memory_resource& batch_memory_;
  um::Ledger ledger_;
  um::LimitedMemory near_memory_;
  State state_;
  StateSlices slices_;
  MicroBatches batches_;
  RankStep rank_;  // whose exchanges the training makes
  BatchStage stage_;
  std::size_t evaluation_batch_;
  std::vector<prefetch::StepLayout> layouts_;  // of the training's step and the evaluation's
  um::Bytes far_memory_;
  StepSpace space_;
  std::unique_ptr<Runner> training_;
  std::unique_ptr<Runner> evaluation_;
  prefetch::StepMemory* holder_ = nullptr;  // of the state that moves; null: it is all far
  bool is_in_step_ = false;                 // also where its step has thrown
  prefetch::Timeline timeline_;
  um::Bytes near_peak_;
};

/// How to load batches for `session`; `threads` as TrainOptions::loader_threads has them.
[[nodiscard]] inline LoaderOptions loader_options(const Session& session, std::size_t threads) {
  return {.threads = threads > 0 ? threads : usual_loader_threads(),
          .memory = &session.batch_memory(),
          .has_bytes = session.loads_bytes()};
}

/// A session that reads batches ahead, which a loader owns: to be destroyed before it.
class SettledSession {
 public:
  explicit SettledSession(Session& session) : session_{session} {}
  SettledSession(const SettledSession&) = delete;
  SettledSession& operator=(const SettledSession&) = delete;
  ~SettledSession() { session_.settle(); }

 private:
  Session& session_;
};

}  // namespace spillway
