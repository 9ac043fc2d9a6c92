#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "um/bytes.h"

namespace spillway::um {

/// The pauses between the tries of a call that fails for the moment: each is twice as long as the
/// one before it, up to a longest one, until a total is used up.
class BackOff {
 public:
  struct Pauses {
    Nanoseconds first;
    Nanoseconds longest;
    Nanoseconds total;  ///< of all pauses together
  };

  explicit BackOff(const Pauses& pauses) noexcept
      : next_{pauses.first}, longest_{pauses.longest}, left_{pauses.total} {}

  /// The pause before the next try; nothing when the tries are over. Allocates nothing.
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

/// Sleeps until `time`, to the microsecond where the thread's timer allows it; returns at once when
/// it has passed. May be called from a page-fault handler.
void sleep_until(std::chrono::steady_clock::time_point time) noexcept;

/// As sleep_until(), for so long from now.
void sleep_for(std::chrono::nanoseconds time) noexcept;

}  // namespace spillway::um
