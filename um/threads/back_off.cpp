#include "um/threads/back_off.h"

#include <cerrno>
#include <ctime>

namespace spillway::um {

void sleep_until(std::chrono::steady_clock::time_point time) noexcept {
  if (time <= std::chrono::steady_clock::now()) return;
  // steady_clock is CLOCK_MONOTONIC; clock_nanosleep is safe in a signal handler.
  const auto since_boot = std::chrono::nanoseconds{time.time_since_epoch()}.count();
  const timespec until{.tv_sec = since_boot / 1'000'000'000, .tv_nsec = since_boot % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void sleep_for(std::chrono::nanoseconds time) noexcept {
  sleep_until(std::chrono::steady_clock::now() + time);
}

}  // namespace spillway::um
