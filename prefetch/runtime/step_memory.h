#pragma once

#include <cstddef>

#include "prefetch/liveness.h"
#include "prefetch/task_graph.h"
#include "prefetch/timeline.h"

namespace spillway::prefetch {

/// Where the blocks of a step are while it runs: one of the memory modes (resident, managed, copy),
/// executing a plan.
///
/// The executor calls, on one thread: begin_step(), then for each run of the plan in order
/// begin_run(), reads addresses, runs the kernel, end_run(), then end_step(). After an exception
/// only destruction is allowed.
class StepMemory {
 public:
  virtual ~StepMemory() = default;

  virtual void begin_step() = 0;

  /// Waits until everything run `position` touches may be touched.
  /// Throws: um::Error when a move failed.
  virtual void begin_run(Position position) = 0;
  /// The address of an operand of the current run; valid until its end_run().
  [[nodiscard]] virtual std::byte* address(DataId id) const = 0;
  /// The workspace of the current run; null when its algorithm needs none.
  [[nodiscard]] virtual std::byte* workspace() const = 0;
  /// The run has ended: what nobody needs any more is dropped, and moves that waited for it may
  /// start.
  virtual void end_run(Position position) = 0;

  /// Waits until every move has ended.
  virtual void end_step() = 0;

  /// When the moves of the last step began and ended, from its beginning; `runs` is empty.
  [[nodiscard]] virtual Timeline moves() const = 0;
};

}  // namespace spillway::prefetch
