#pragma once

#include <span>
#include <vector>

#include "prefetch/bounds/timed_intervals.h"
#include "prefetch/profile.h"

namespace spillway::prefetch {

/// What tasks that fill near memory make their successors wait for: while a task runs, only so much
/// else can be near as its own operands leave room for. What a later task needs beyond that comes
/// in, or is made again, when the first has ended; and what was written in between and has no room
/// beside the later task must have left by then.
class TransitionBound {
 public:
  /// `rooms`: by task, bytes of near memory beside its operands and least workspace. `times`: by
  /// task. All must outlive it.
  TransitionBound(std::span<const TimedInterval> idle_intervals, std::span<const double> rooms,
                  std::span<const double> times, const LinkProfile& link, bool may_recompute);

  /// How far apart two tasks are looked at.
  static constexpr Position kWindow = 8;

  /// At least so much time is between the end of `first` and the start of `later`, which is at most
  /// kWindow tasks after it. Never less than the tasks in between take.
  [[nodiscard]] double between(Position first, Position later) const;

 private:
  [[nodiscard]] double arrival(Position first, Position later, double computing) const;
  [[nodiscard]] double departure(Position first, Position later) const;

  std::span<const double> rooms_;
  std::span<const double> times_;
  double out_;  // bytes a second
  double in_;   // bytes a second
  bool may_recompute_;
  std::vector<std::vector<const TimedInterval*>> by_next_;     // by task
  std::vector<std::vector<const TimedInterval*>> by_written_;  // by task
};

}  // namespace spillway::prefetch
