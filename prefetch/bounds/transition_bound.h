#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "prefetch/bounds/timed_intervals.h"
#include "prefetch/profile.h"

namespace spillway::prefetch {

/// Lower bounds of the time between two tasks that fill near memory, from the room of each beside
/// its own operands and least workspace.
///
/// **Incoming blocks.** Consider two tasks and the blocks that are idle during the first and next
/// used by a later task, up to and including the second. During the first task, their near bytes
/// are limited by its room. All others cross the link, or are recomputed, before the second task
/// starts. Transfers take the link's time per byte. Recomputation takes processor time in addition
/// to the tasks in between (RecomputationCurve): its inputs were near instead, come in, or are
/// recomputed, too. Link and processor work concurrently, so the longer time counts, for the
/// cheapest division. A block that was recomputed before or during the first task is near
/// meanwhile, or crosses the link: this cannot beat the bound.
///
/// **Outgoing blocks.** Consider blocks written since the first task began and needed after the
/// second. During the second task, their near bytes are limited by its room. No block leaves before
/// it is written, so the others leave in between. Blocks that may be discarded need not.
///
/// The bounds of disjoint stretches of a step add up.
class TransitionBound {
 public:
  /// `rooms`: by task, bytes of near memory beside its operands and least workspace. `times`: by
  /// task. All arguments must outlive it. Complexity: O(tasks * kWindow * blocks of a window).
  TransitionBound(std::span<const TimedInterval> idle_intervals, std::span<const double> rooms,
                  std::span<const double> times, const LinkProfile& link, bool may_recompute);

  /// The largest distance between two considered tasks: a block of layers of common networks.
  static constexpr Position kWindow = 32;

  /// Returns the least time between the end of `first` and the start of `later`, which is at most
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
  double out_;  // bytes per second
  double in_;   // bytes per second
  bool may_recompute_;
  std::vector<std::vector<const TimedInterval*>> by_next_;     // by task
  std::vector<std::vector<const TimedInterval*>> by_written_;  // by task
  std::vector<double> least_;                                  // by place()
};

}  // namespace spillway::prefetch
