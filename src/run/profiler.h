#pragma once

#include <chrono>
#include <functional>
#include <stop_token>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/program/step.h"
#include "um/memory.h"
#include "um/stream.h"

namespace spillway {

/// Receives the fraction of the expected profiling time that has passed.
using OnProgress = std::function<void(double)>;

/// Limits repeated runs to the time of this many steps (each task with its first algorithm), or to
/// measuring_time() of a second if that is longer.
inline constexpr int kRepeatedSteps = 3;

/// Measures every task of `step` with each of its algorithms, one at a time and in the step's
/// order, so that caches hold what they would hold in training; of tasks of several micro-batches
/// that are alike (first_alike()) the first. Uses `limit` bytes of `memory`, or
/// what the largest task needs with its first algorithm if that is more; frees them at the end.
///
/// Runs each algorithm until its fastest times agree within a tenth: two times if it takes 2 ms or
/// more, otherwise five. The result is their median (the faster of two). An algorithm that does not
/// fit gets the time of the first, so that nothing prefers it. measure_link() fills in the link.
/// All decisions use the times of `stream`. If its notices are not free, as on a GPU, a run of a
/// short task is a batch of launches, so that the latency of one launch does not count; two such
/// runs must agree. Operands are scratch: what a task changes in place affects nothing else.
///
/// Throws: um::OutOfMemory when `memory` has no room; Interrupted when `stop` is requested.
[[nodiscard]] prefetch::Profile measure_tasks(const Step& step, const Backend& backend,
                                              um::Memory& memory, um::Bytes limit,
                                              um::Stream& stream, const std::stop_token& stop,
                                              const OnProgress& on_progress);

/// Returns `usual`, times the factor in the environment variable SPILLWAY_MEASURING_TIME (over 0,
/// at most 1) if set. Short measurements may make slower plans but never wrong ones, and tests make
/// hundreds of trainings. Throws: um::Error when the variable is not such a factor.
[[nodiscard]] std::chrono::nanoseconds measuring_time(std::chrono::nanoseconds usual);
/// Returns whether it says less than 1: such times are not worth keeping. Throws: as above.
[[nodiscard]] bool has_short_measurements();

}  // namespace spillway
