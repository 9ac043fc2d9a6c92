#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "prefetch/bounds/timed_intervals.h"
#include "prefetch/profile.h"

namespace spillway::prefetch {

/// What tasks that fill near memory make later ones wait for, by the room that a task has beside
/// its own operands and least workspace.
///
/// **What comes in.** Consider two tasks and the blocks that are idle during the first and used
/// next by some task after it, up to and with the later one. While the first runs, no more of their
/// bytes are near than it has room for. All others come over the link, or are made again, before
/// the later task starts. What comes takes its bytes' time on the link. What is made takes the
/// processor's time beside that of the tasks in between, as RecomputationCurve says: who makes a
/// block again also needs what it is made of, which was near instead, came in, or is made again,
/// too. Link and processor work at once, so the longer of both passes; the cheapest division
/// counts. What was made again before or during the first task is near meanwhile, or comes over the
/// link: it is no escape.
///
/// **What leaves.** Blocks written since the first task began, and needed after the later one, are
/// not near while that runs but for its room. Nothing leaves before it has been written, so the
/// others leave in between. What may be dropped need not.
///
/// Whatever stretches of a step do not overlap, their times add up.
class TransitionBound {
 public:
  /// `rooms`: by task, bytes of near memory beside its operands and least workspace. `times`: by
  /// task. All must outlive it. Complexity: O(tasks * kWindow * blocks of a window).
  TransitionBound(std::span<const TimedInterval> idle_intervals, std::span<const double> rooms,
                  std::span<const double> times, const LinkProfile& link, bool may_recompute);

  /// How far apart two tasks are looked at: as far as a block of layers of common networks goes.
  static constexpr Position kWindow = 32;

  /// At least so much time is between the end of `first` and the start of `later`, which is at most
  /// kWindow tasks after it. Never less than the tasks in between take.
  [[nodiscard]] double between(Position first, Position later) const {
    return least_[place(first, later)];
  }

 private:
  static std::size_t place(Position first, Position later) {
    return static_cast<std::size_t>(first) * kWindow + (later - first - 1);
  }
  void add_arrivals(Position first);
  void add_departures(Position later);
  [[nodiscard]] double arrival(std::span<const TimedInterval* const> coming, Position first,
                               double bytes, double computing) const;

  std::span<const double> rooms_;
  std::span<const double> times_;
  double out_;  // bytes a second
  double in_;   // bytes a second
  bool may_recompute_;
  std::vector<std::vector<const TimedInterval*>> by_next_;     // by task
  std::vector<std::vector<const TimedInterval*>> by_written_;  // by task
  std::vector<double> least_;                                  // by place()
};

}  // namespace spillway::prefetch
