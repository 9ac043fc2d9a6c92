#pragma once

#include <algorithm>
#include <chrono>
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
void sleep_until(std::chrono::steady_clock::time_point time) noexcept;

/// Sleeps for `time`, like sleep_until().
void sleep_for(std::chrono::nanoseconds time) noexcept;

}  // namespace spillway::um
