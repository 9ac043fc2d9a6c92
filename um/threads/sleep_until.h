#pragma once

#include <chrono>

namespace spillway::um {

/// Sleeps until `time`, to the microsecond where the thread's timer allows it; returns at once when
/// it has passed. May be called from a page-fault handler.
void sleep_until(std::chrono::steady_clock::time_point time) noexcept;

/// As sleep_until(), for so long from now.
void sleep_for(std::chrono::nanoseconds time) noexcept;

}  // namespace spillway::um
