#pragma once

#include <cstdint>
#include <span>

#include "prefetch/plan.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Gives each run of a plan that has its moves the fewest conditions with which it keeps within
/// `pool` under any timing: the prefetches of its operands, and as many offloads as it needs so
/// that it fits whichever of the prefetches that may have started by then have started.
///
/// `demand` as from demand(); `landed[p]`: so many prefetches must have ended because run p uses
/// what they bring; `far`: bytes of state that are far when the step begins.
///
/// Requires: some execution that starts the moves no earlier than their conditions say, the runs
/// and moves each in order, keeps within `pool`.
/// Complexity: O((runs + moves) log moves).
void add_run_conditions(std::span<const um::Bytes> demand, um::Bytes pool, um::Bytes far,
                        std::span<const std::uint32_t> landed, Plan& plan);

}  // namespace spillway::prefetch
