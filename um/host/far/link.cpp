#include "um/host/far/link.h"

#include <algorithm>

namespace spillway::um {

Link::Clock::time_point Link::reserve(Bytes size) noexcept {
  const Clock::rep now = Clock::now().time_since_epoch().count();
  const Clock::rep duration = Clock::duration{options_.latency + time_of(size)}.count();
  Clock::rep free_at = free_at_.load(std::memory_order_relaxed);
  Clock::rep end = 0;
  do {
    end = std::max(now, free_at) + duration;
  } while (!free_at_.compare_exchange_weak(free_at, end, std::memory_order_relaxed));
  return Clock::time_point{Clock::duration{end}};
}

Nanoseconds Link::time_of(Bytes size) const noexcept {
  return options_.bandwidth ? size / *options_.bandwidth : Nanoseconds{0};
}

}  // namespace spillway::um
