#pragma once

#include <nlohmann/json.hpp>

#include "tests/fuzz/mutation.h"

namespace spillway::fuzz {

/// A spillway-trace of up to 24 tasks: rounds of a forward and a backward pass that accumulate
/// gradients, or tasks that read and write any block. Phases are stated in order, in any order, for
/// some tasks or for none. Times go up to the longest that a trace may have, and sizes up to the
/// largest where it `has_huge_blocks`; tasks have several algorithms, may be recomputable, and
/// weights may be offloadable. Nearly all of them are sound; the reader refuses those that exceed a
/// sum.
[[nodiscard]] nlohmann::json drawn_trace(Generator& generator, bool has_huge_blocks);

/// The link of a machine, in JSON: the usual ones, and the slowest, fastest and strangest that a
/// machine file may have.
[[nodiscard]] nlohmann::json drawn_link(Generator& generator);

}  // namespace spillway::fuzz
