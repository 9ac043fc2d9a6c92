#pragma once

#include <ostream>

#include "src/plan/memory_mode.h"

namespace spillway {

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
inline void PrintTo(MemoryMode mode, std::ostream* out) { *out << to_string(mode); }

}  // namespace spillway
