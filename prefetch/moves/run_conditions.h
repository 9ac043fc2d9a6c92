#pragma once

#include <cstdint>
#include <span>

#include "prefetch/plan.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Gives each run of a plan with moves the fewest conditions that keep it within `pool` under any
/// timing: the prefetches of its operands, and enough offloads for any set of prefetches that may
/// have started.
///
/// `demand` as from demand(); `landed[p]`: the number of prefetches that must have ended because
/// run p uses their blocks; `far`: bytes of state that are far when the step begins.
///
/// Requires: some execution keeps within `pool` that runs the runs and moves each in order, and
/// starts each move no earlier than its conditions allow.
/// Complexity: O((runs + moves) log moves).
void add_run_conditions(std::span<const um::Bytes> demand, um::Bytes pool, um::Bytes far,
                        std::span<const std::uint32_t> landed, Plan& plan);

}  // namespace spillway::prefetch
