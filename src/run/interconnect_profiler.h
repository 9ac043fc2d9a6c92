#pragma once

#include <span>
#include <vector>

#include "prefetch/interconnect.h"
#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/program/step.h"
#include "src/ranks/communicator.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway {

/// The time of an all-reduce of `size` bytes.
struct AllReduceTime {
  um::Bytes size;
  um::Nanoseconds time{0};
};

/// Memory that ranks exchange, and the communicators for it.
struct RankMemory {
  Communicator& ranks;  ///< the processes, which compare their times
  Communicator& near;   ///< exchanges `memory`; the same as `ranks` if that is RAM
  um::Memory& memory;
};

/// Times all-reduces by TreeReduction of some hundred bytes, a mebibyte and a bucket of gradients.
/// Each time is the shortest of a few repetitions, each timed by its slowest rank. All ranks call
/// this and get the same result. Throws: what Communicator throws; um::OutOfMemory.
[[nodiscard]] std::vector<AllReduceTime> time_all_reduces(const RankMemory& between);

/// Fits an interconnect to `times`, which are in order of size: its prefetch::all_reduce_time()
/// equals the smallest's and the largest's. Requires: at least two ranks, and two times of
/// different sizes.
[[nodiscard]] prefetch::Interconnect fitted_interconnect(std::size_t ranks,
                                                         std::span<const AllReduceTime> times);

/// Repeats an all-reduce of one bucket of gradients for at least `duration`. All ranks call this at
/// once. Throws: as time_all_reduces().
void repeat_all_reduces(const RankMemory& between, um::Nanoseconds duration);

/// Times all-reduces and fits the interconnect to them. Requires: at least two ranks.
[[nodiscard]] prefetch::Interconnect measure_interconnect(const RankMemory& between);

/// The step that a rank computes while it exchanges, with the times of its tasks.
struct ExchangeLoad {
  ExecutionContext& context;
  const Step& step;
  const prefetch::Profile& profile;
  um::Bytes limit;  ///< of near memory, which is freed again
};

/// Returns how fast the step's longest task runs on the slowest rank during repeated all-reduces,
/// relative to undisturbed, at most 1. All ranks call this at once and get the same result. Throws:
/// what a Communicator throws; um::OutOfMemory.
[[nodiscard]] double compute_speed_while_exchanging(const RankMemory& between,
                                                    const ExchangeLoad& load);

}  // namespace spillway
