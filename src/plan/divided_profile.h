#pragma once

#include "prefetch/profile.h"
#include "prefetch/task_graph.h"

namespace spillway {

/// `profile`, which is of `whole`, for the same tasks in a graph in which ranks update slices
/// (divide_updates()): what goes over fewer bytes takes as much less time, and to take a part of
/// the parameters as long as its update did for as many bytes.
[[nodiscard]] prefetch::Profile divided_profile(const prefetch::TaskGraph& divided,
                                                const prefetch::TaskGraph& whole,
                                                const prefetch::Profile& profile);

}  // namespace spillway
