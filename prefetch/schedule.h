#pragma once

#include <span>
#include <vector>

#include "prefetch/cover.h"
#include "prefetch/plan.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Turns chosen absences into moves with conditions, and gives `plan.runs` theirs. Requires:
/// `plan.runs` is filled, `absences` in order of `needed`, and they cover `demand` down to `pool`.
///
/// - An offload starts when the last run before the gap has ended; the first run that counts on its
/// room waits for it.
/// - Prefetches go in the order in which their blocks are used next, each as early as memory
/// allows: it is
///   admitted at the first run from which on every run up to its use still fits, and then waits for
///   every offload that this run counts on. (Facts on planning, section 3: SIMULATE's admission
///   rule, made static.)
/// - An absence whose room turns out to be free all the time is left out.
///
/// The conditions alone keep memory within `pool` under any timing.
/// Complexity: O(absences * runs) at worst, O(absences + runs) where little room is free.
void schedule_moves(std::vector<Absence> absences, std::span<const um::Bytes> demand,
                    um::Bytes pool, Plan& plan);

}  // namespace spillway::prefetch
