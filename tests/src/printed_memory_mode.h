#pragma once

#include <ostream>

#include "src/plan/plans.h"

namespace spillway {

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
inline void PrintTo(MemoryMode mode, std::ostream* out) { *out << to_string(mode); }

}  // namespace spillway
