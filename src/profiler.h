#pragma once

#include <atomic>
#include <functional>

#include "prefetch/profile.h"
#include "src/backend.h"
#include "src/step.h"
#include "um/memory.h"
#include "um/stream.h"

namespace spillway {

/// Called as profiling goes on, with the fraction done.
using OnProgress = std::function<void(double)>;

/// Measures every task of `step` with each of its algorithms, one at a time, in a piece of `memory`
/// of at most `limit` bytes that is given back at the end. Each time is the median of a few runs
/// after a first one that warms up. An algorithm that does not fit within `limit` gets the time of
/// the first: no reason to choose it. The link of the result is left to measure_link(). Throws:
/// um::OutOfMemory when some task does not fit at all; Interrupted when `stop` becomes true.
[[nodiscard]] prefetch::Profile measure_tasks(const Step& step, const Backend& backend,
                                              um::Memory& memory, um::Bytes limit,
                                              um::Stream& stream, const std::atomic<bool>& stop,
                                              const OnProgress& on_progress);

}  // namespace spillway
