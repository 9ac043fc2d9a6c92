#pragma once

#include <nlohmann/json.hpp>

#include "tests/fuzz/mutation.h"

namespace spillway::fuzz {

/// Returns a random spillway-trace of up to 24 tasks: micro-batches that accumulate gradients, or
/// tasks that read and write any block. Phases are stated in order, in any order, for some tasks or
/// for none. Times go up to a trace's limit, and sizes, too, with `has_huge_blocks`. Tasks have
/// several algorithms and may be recomputable; weights may be offloadable. A third are of version
/// 2, with micro-batches, orders and variants. Nearly all traces are valid; the reader refuses
/// those with sums beyond a limit.
[[nodiscard]] nlohmann::json drawn_trace(Generator& generator, bool has_huge_blocks);

/// Returns a random link of a machine, in JSON: the usual ones, and the slowest, fastest and
/// strangest that a machine file may have.
[[nodiscard]] nlohmann::json drawn_link(Generator& generator);

}  // namespace spillway::fuzz
