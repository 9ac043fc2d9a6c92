#pragma once

#include <chrono>
#include <cstdint>

namespace spillway::um {

/// A duration.
using Nanoseconds = std::chrono::duration<std::int64_t, std::nano>;

}  // namespace spillway::um
