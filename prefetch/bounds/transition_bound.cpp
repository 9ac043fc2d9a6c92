#include "prefetch/bounds/transition_bound.h"

#include <algorithm>

#include "prefetch/bounds/bound_curves.h"

namespace spillway::prefetch {

TransitionBound::TransitionBound(std::span<const TimedInterval> idle_intervals,
                                 std::span<const double> rooms, std::span<const double> times,
                                 const LinkProfile& link, bool may_recompute)
    : rooms_{rooms},
      times_{times},
      out_{link.offload.bytes_per_second()},
      in_{link.prefetch.bytes_per_second()},
      may_recompute_{may_recompute},
      by_next_(times.size()),
      by_written_(times.size()) {
  for (const TimedInterval& idle : idle_intervals) {
    if (!idle.to_end) by_next_[idle.next].push_back(&idle);
    if (idle.is_written) by_written_[idle.written].push_back(&idle);
  }
}

double TransitionBound::between(Position first, Position later) const {
  double computing = 0;
  for (Position t = first + 1; t < later; ++t) computing += times_[t];
  return std::max({computing, arrival(first, later, computing), departure(first, later)});
}

// Blocks that wait for `later` since before `first`, less what can be near beside `first`.
double TransitionBound::arrival(Position first, Position later, double computing) const {
  double bytes = -rooms_[first];
  RecomputationCurve again{times_};
  for (const TimedInterval* idle : by_next_[later]) {
    if (!idle->holds(first)) continue;
    bytes += idle->size;
    if (may_recompute_ && !idle->producers.empty()) again.add(idle->producers, idle->size);
  }
  if (bytes <= 0) return 0;
  again.finish();
  // Some come over the link, the others are made again by the processor: the longer of both counts.
  double low = 0;
  double high = std::min(bytes, again.total());
  for (int i = 0; i < 50; ++i) {
    const double made = low + (high - low) / 2;
    ((bytes - made) / in_ > computing + again.time(made) ? low : high) = made;
  }
  return std::min((bytes - low) / in_, computing + again.time(low) + (bytes - low) / in_);
}

// Blocks written since `first` began that are needed after `later`, less what can be near beside
// `later`. What may be dropped need not leave.
double TransitionBound::departure(Position first, Position later) const {
  double bytes = -rooms_[later];
  for (Position t = first; t < later; ++t) {
    for (const TimedInterval* idle : by_written_[t]) {
      if (!idle->holds(later)) continue;
      if (!may_recompute_ || idle->producers.empty()) bytes += idle->size;
    }
  }
  return std::max(0.0, bytes / out_);
}

}  // namespace spillway::prefetch
