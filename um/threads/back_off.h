#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <optional>

#include "um/bytes.h"

namespace spillway::um {

/// Pauses between retries of a call that fails temporarily. Each pause is twice as long as the one
/// before, up to a longest pause, until a total is used up.
class BackOff {
 public:
  struct Pauses {
    Nanoseconds first;
    Nanoseconds longest;
    Nanoseconds total;  ///< the sum of all pauses
  };

  explicit BackOff(const Pauses& pauses) noexcept
      : next_{pauses.first}, longest_{pauses.longest}, left_{pauses.total} {}

  /// Returns the pause before the next retry; nullopt when there are no more retries. Allocates
  /// nothing.
  [[nodiscard]] std::optional<Nanoseconds> next() noexcept {
    const Nanoseconds pause = std::min(next_, left_);
    if (pause <= Nanoseconds{0}) return std::nullopt;
    left_ -= pause;
    next_ = std::min(2 * next_, longest_);
    return pause;
  }

 private:
  Nanoseconds next_;
  Nanoseconds longest_;
  Nanoseconds left_;
};

/// Sleeps until `time`, to the microsecond if the thread's timer allows it. Returns at once when
/// `time` has passed. May be called from a page-fault handler.
inline void sleep_until(std::chrono::steady_clock::time_point time) noexcept {
  if (time <= std::chrono::steady_clock::now()) return;
  // steady_clock is CLOCK_MONOTONIC; clock_nanosleep is safe in a signal handler.
  const auto since_boot = std::chrono::nanoseconds{time.time_since_epoch()}.count();
  const timespec until{.tv_sec = since_boot / 1'000'000'000, .tv_nsec = since_boot % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

/// Sleeps for `time`, like sleep_until().
inline void sleep_for(std::chrono::nanoseconds time) noexcept {
  sleep_until(std::chrono::steady_clock::now() + time);
}

}  // namespace spillway::um
