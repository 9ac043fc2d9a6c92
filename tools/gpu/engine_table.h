#pragma once

#include <nlohmann/json.hpp>

#include "prefetch/profile.h"
#include "tools/gpu/distinct_convolutions.h"

namespace spillway::gpu {

/// For each convolution: its tasks, pass and geometry; the engines that were tried, the one with
/// the least workspace first, each with workspace and time; which was fastest. Then what all
/// convolutions of the step take, each by its fastest engine and by that with the least workspace.
/// `times`: of `convolutions.step`.
[[nodiscard]] nlohmann::json engine_table(const DistinctConvolutions& convolutions,
                                          const prefetch::Profile& times);

}  // namespace spillway::gpu
