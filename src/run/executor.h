#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/runtime/given_step.h"
#include "prefetch/runtime/runner/exchange_thread.h"
#include "prefetch/runtime/runner/step_runner.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/simulate/timeline.h"
#include "src/ops/backend.h"
#include "src/program/step.h"
#include "src/run/far_updates.h"
#include "um/device.h"
#include "um/stream.h"

namespace spillway {

/// Thrown out of long work when the user asked to stop.
class Interrupted final : public std::runtime_error {
 public:
  Interrupted() : Interrupted{"the step under way was not finished"} {}
  /// `what_is_left` says what was not finished, or where to go on.
  explicit Interrupted(const std::string& what_is_left) : std::runtime_error{what_is_left} {}
};

/// The loss of a micro-batch.
struct StepLoss {
  float loss = 0;     ///< as the step's softmax cross-entropy operation says
  float correct = 0;  ///< predictions that were right
};

/// What one step gave.
struct StepResult {
  std::vector<StepLoss> losses;      ///< by Step::results
  std::vector<JudgedSample> judged;  ///< Step::judged_samples of them
  std::vector<float> logits;         ///< Step::given_logits, (N, C)
  /// Of the steps whose times are taken: all where that is free, the first two and then one in
  /// Executor::kStepsPerTimeline on a GPU.
  std::optional<prefetch::Timeline> timeline;
  /// Why steps are not repeated from now on although they might be; once.
  std::string problem;
};

/// Runs the launches of a step in the order of a plan, on one stream, with the blocks where a
/// StepMemory has them. All arguments must outlive it.
///
/// Where everything has its fixed place and the stream has lanes, a step is all given ahead
/// (prefetch::GivenStep), kept, and repeated: a captured CUDA graph. Else the host walks the plan
/// beside the step.
class Executor {
 public:
  static constexpr std::uint64_t kStepsPerTimeline = 64;
  /// Returns what has happened so far to the memory that the step moves in.
  using Counts = std::function<um::Counters()>;

  /// Prepares the kernels, on `stream`. When `stop` is requested, the step under way ends with
  /// Interrupted after the current task, or where it is repeated as one piece before it begins.
  /// Without `may_repeat` no step is given ahead. `exchange` makes an exchange of the plan's
  /// between ranks, on a thread of its own. `counts` tells the page faults of each run, of a plan
  /// that pages on demand.
  Executor(const Step& step, const prefetch::Plan& plan, const Backend& backend,
           prefetch::StepMemory& memory, um::Stream& stream, std::stop_token stop,
           bool may_repeat = true, prefetch::ExchangeThread::Exchange exchange = {},
           Counts counts = {});

  /// Calls `on_loaded`, in work of the stream, when all launches that load the batch have been
  /// given. Throws: Interrupted; um::Error when a move failed. After that nothing but destruction
  /// is allowed.
  StepResult run(
      const StepContext& context, const std::function<void()>& on_loaded = [] {});

 private:
  // Where what a run touches is.
  struct Places {
    std::function<std::byte*(prefetch::DataId)> block;
    std::byte* workspace = nullptr;
  };

  void run_all(const StepContext& context, StepResult& result);
  void walk(const StepContext& context, StepResult& result);
  void give_ahead(const StepContext& context, StepResult& result);
  [[nodiscard]] std::string keep(const StepContext& context);
  [[nodiscard]] Places fixed(prefetch::Position position);
  void postpone_updates();
  void launch_postponed(const StepContext& context);
  void run_one(prefetch::Position position, const StepContext& context, const Places& places);
  void launch_counted(prefetch::Position position, const StepContext& context,
                      const Places& places);
  void launch(prefetch::Position position, const StepContext& context, const Places& places);
  void read_result(StepResult& result);

  const Step& step_;
  const prefetch::Plan& plan_;
  const Backend& backend_;
  prefetch::StepMemory& memory_;
  um::Stream& stream_;
  std::stop_token stop_;
  prefetch::StepRunner runner_;
  prefetch::ExchangeThread::Exchange exchange_;
  Counts counts_;                            // empty: they are not asked
  std::vector<prefetch::RunFaults> faults_;  // of the current step, by run
  FarUpdates far_updates_;
  std::unique_ptr<um::Lanes> lanes_;  // null where the plan is walked
  std::optional<prefetch::GivenStep> given_;
  prefetch::Position loads_ = 0;      // the first so many runs load (a part of) the batch
  prefetch::Position last_load_ = 0;  // the run behind the last that does
  std::function<void()> on_loaded_;   // of the current step
  std::uint64_t steps_ = 0;
  bool takes_times_ = true;                       // of the current step
  std::vector<std::unique_ptr<Kernel>> kernels_;  // by TaskId
  // Of a step that is repeated: updates that are made together, at its end, by one kernel.
  std::vector<bool> is_postponed_;  // by position
  std::unique_ptr<Kernel> postponed_;
  std::vector<std::byte*> operands_;  // of the current run
};

}  // namespace spillway
