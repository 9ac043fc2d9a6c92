#pragma once

#include <chrono>
#include <cstdint>

namespace spillway::um {

/// A duration.
using Nanoseconds = std::chrono::duration<std::int64_t, std::nano>;

[[nodiscard]] constexpr double seconds(Nanoseconds time) {
  return static_cast<double>(time.count()) * 1e-9;
}

}  // namespace spillway::um
