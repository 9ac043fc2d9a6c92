#pragma once

#include <functional>
#include <stop_token>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/step/step.h"
#include "um/memory.h"
#include "um/stream.h"

namespace spillway {

/// Called as profiling goes on, with the fraction done.
using OnProgress = std::function<void(double)>;

/// Measures every task of `step` with each of its algorithms, one at a time and in the step's
/// order, so that caches hold what they would hold in training, in a piece of `memory` that is
/// given back at the end: of `limit` bytes, or of what the largest task needs with its first
/// algorithm, where that is more. Each time is the median of a few runs (of two the faster) after a
/// first one that warms up. An algorithm that does not fit gets the time of the first: no reason to
/// choose it. The link of the result is left to measure_link(). Throws: um::OutOfMemory when
/// `memory` has no room; Interrupted when `stop` is requested.
[[nodiscard]] prefetch::Profile measure_tasks(const Step& step, const Backend& backend,
                                              um::Memory& memory, um::Bytes limit,
                                              um::Stream& stream, const std::stop_token& stop,
                                              const OnProgress& on_progress);

}  // namespace spillway
