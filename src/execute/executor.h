#pragma once

#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/runtime/step_runner.h"
#include "prefetch/simulate/timeline.h"
#include "src/ops/backend.h"
#include "src/step/step.h"
#include "um/stream.h"

namespace spillway {

/// Thrown out of long work when the user asked to stop.
class Interrupted final : public std::runtime_error {
 public:
  Interrupted() : Interrupted{"the step under way was not finished"} {}
  /// `what_is_left` says what was not finished, or where to go on.
  explicit Interrupted(const std::string& what_is_left) : std::runtime_error{what_is_left} {}
};

/// What one step gave.
struct StepResult {
  float loss = 0;     ///< as the step's softmax cross-entropy operation says
  float correct = 0;  ///< predictions that were right
  prefetch::Timeline timeline;
};

/// Runs the launches of a step in the order of a plan, on one stream, with the blocks where a
/// StepMemory has them. All arguments must outlive it.
class Executor {
 public:
  /// Prepares the kernels, on `stream`. When `stop` is requested, the step under way ends with
  /// Interrupted after the current task.
  Executor(const Step& step, const prefetch::Plan& plan, const Backend& backend,
           prefetch::StepMemory& memory, um::Stream& stream, std::stop_token stop);

  /// Throws: Interrupted; um::Error when a move failed. After that nothing but destruction is
  /// allowed.
  StepResult run(const StepContext& context);

 private:
  void run_all(const StepContext& context, StepResult& result);
  void run_one(prefetch::Position position, const StepContext& context);

  const Step& step_;
  const prefetch::Plan& plan_;
  prefetch::StepMemory& memory_;
  um::Stream& stream_;
  std::stop_token stop_;
  prefetch::StepRunner runner_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // by TaskId
  std::vector<std::byte*> operands_;              // of the current run
};

}  // namespace spillway
