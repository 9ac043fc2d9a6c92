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
      by_written_(times.size()),
      least_(times.size() * kWindow) {
  for (const TimedInterval& idle : idle_intervals) {
    if (!idle.to_end) by_next_[idle.next].push_back(&idle);
    if (idle.is_written) by_written_[idle.written].push_back(&idle);
  }
  const auto count = static_cast<Position>(times.size());
  for (Position t = 0; t < count; ++t) add_arrivals(t);
  for (Position t = 0; t < count; ++t) add_departures(t);
}

void TransitionBound::add_arrivals(Position first) {
  const auto count = static_cast<Position>(times_.size());
  std::vector<const TimedInterval*> coming;
  double bytes = -rooms_[first];
  double computing = 0;
  for (Position later = first + 1; later < count && later <= first + kWindow; ++later) {
    for (const TimedInterval* idle : by_next_[later]) {
      if (!idle->holds(first)) continue;
      bytes += idle->size;
      coming.push_back(idle);
    }
    double& least = least_[place(first, later)];
    least = computing;
    if (bytes > computing * in_) least = arrival(coming, first, bytes, computing);
    computing += times_[later];
  }
}

// Bounds the time for those of the blocks `coming` after `first` that have no room during it:
// `bytes`.
double TransitionBound::arrival(std::span<const TimedInterval* const> coming, Position first,
                                double bytes, double computing) const {
  RecomputationCurve again{times_};
  for (const TimedInterval* idle : coming) {
    if (!may_recompute_ || idle->producers.empty()) continue;
    again.add(idle->producers, idle->size);
    for (const RecomputeInput& recompute_input : idle->recompute_inputs) {
      // an input that is needed later is a block of its own
      if (recompute_input.last < first) again.add_recompute_input(recompute_input);
    }
  }
  again.finish();
  // The link moves some and the processor recomputes the others, concurrently: the longer time
  // counts.
  double low = 0;
  double high = std::min(bytes, again.total());
  for (int i = 0; i < 50; ++i) {
    const double made = low + (high - low) / 2;
    ((bytes - made) / in_ > computing + again.time(made) ? low : high) = made;
  }
  return std::max(computing, (bytes - high) / in_);
}

void TransitionBound::add_departures(Position later) {
  double bytes = -rooms_[later];
  const Position window = std::min(later, kWindow);
  for (Position first = later; first-- > later - window;) {
    for (const TimedInterval* idle : by_written_[first]) {
      if (!idle->holds(later)) continue;
      if (!may_recompute_ || idle->producers.empty()) bytes += idle->size;
    }
    double& least = least_[place(first, later)];
    least = std::max(least, bytes / out_);
  }
}

}  // namespace spillway::prefetch
