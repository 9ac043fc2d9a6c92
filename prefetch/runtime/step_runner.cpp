#include "prefetch/runtime/step_runner.h"

#include <exception>
#include <utility>

namespace spillway::prefetch {

Timeline StepRunner::run(const std::function<void(Position)>& launch) {
  begin_ = Clock::now();
  ended_ = 0;
  timeline_.runs.assign(plan_.runs.size(), {});
  memory_.begin_step();
  for (Position position = 0; position < plan_.runs.size(); ++position) {
    memory_.begin_run(position);
    Interval& interval = timeline_.runs[position];
    stream_.notify(
        [this, &interval](Clock::time_point moment) { interval.begin = moment - begin_; });
    launch(position);
    memory_.after_launch(position);
    stream_.notify([this, position](Clock::time_point moment) { end_run(position, moment); });
  }
  memory_.end_step();
  wait_for_runs();
  Timeline moves = memory_.moves();
  return {.runs = timeline_.runs,
          .offloads = std::move(moves.offloads),
          .prefetches = std::move(moves.prefetches)};
}

void StepRunner::end_run(Position position, Clock::time_point moment) {
  timeline_.runs[position].end = moment - begin_;
  try {
    memory_.end_run(position);
  } catch (...) {
    memory_.fail(std::current_exception());
  }
  // Everything under the lock: once it is released the step may be through.
  const std::lock_guard lock{mutex_};
  ++ended_;
  changed_.notify_all();
}

void StepRunner::wait_for_runs() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return ended_ == plan_.runs.size(); });
}

}  // namespace spillway::prefetch
