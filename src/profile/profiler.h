#pragma once

#include <functional>
#include <stop_token>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/step/step.h"
#include "um/memory.h"
#include "um/stream.h"

namespace spillway {

/// Called as profiling goes on, with the fraction of the time it will take that has passed.
using OnProgress = std::function<void(double)>;

/// Runs of algorithms that have run before take at most as long as so many steps, each task with
/// its first algorithm, or the usual second (measuring_time()) where that is longer.
inline constexpr int kRepeatedSteps = 3;

/// Measures every task of `step` with each of its algorithms, one at a time and in the step's
/// order, so that caches hold what they would hold in training, in a piece of `memory` that is
/// given back at the end: of `limit` bytes, or of what the largest task needs with its first
/// algorithm, where that is more.
///
/// An algorithm is run once, and again until its fastest times are within a tenth of each other:
/// two times of one that takes 2 ms or more, five of a shorter one. The time is the median (of two
/// the faster). An algorithm that does not fit gets the time of the first: no reason to choose it.
/// The link of the result is left to measure_link(). All decisions follow the times of `stream`.
///
/// Throws: um::OutOfMemory when `memory` has no room; Interrupted when `stop` is requested.
[[nodiscard]] prefetch::Profile measure_tasks(const Step& step, const Backend& backend,
                                              um::Memory& memory, um::Bytes limit,
                                              um::Stream& stream, const std::stop_token& stop,
                                              const OnProgress& on_progress);

}  // namespace spillway
