#pragma once

#include <span>
#include <vector>

#include "prefetch/interconnect.h"
#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/ranks/communicator.h"
#include "src/step/step.h"
#include "um/bytes.h"
#include "um/memory.h"

namespace spillway {

/// How long the sum of so many bytes of all ranks takes.
struct AllReduceTime {
  um::Bytes size;
  um::Nanoseconds time{0};
};

/// What ranks exchange, and by what.
struct RankMemory {
  Communicator& ranks;  ///< the processes, which compare their times
  Communicator& near;   ///< what exchanges `memory`: the same where that is RAM
  um::Memory& memory;
};

/// Times all-reduces by the tree (TreeReduction) of some hundred bytes, a mebibyte and a bucket of
/// gradients: the shortest of a few each, of which each is its slowest rank's. All ranks call this,
/// and get the same. Throws: what Communicator throws; um::OutOfMemory.
[[nodiscard]] std::vector<AllReduceTime> time_all_reduces(const RankMemory& between);

/// The interconnect whose prefetch::all_reduce_time() is that of the smallest and the largest of
/// `times`, which are in order. Requires: at least two ranks, and two times of different sizes.
[[nodiscard]] prefetch::Interconnect fitted_interconnect(std::size_t ranks,
                                                         std::span<const AllReduceTime> times);

/// Adds up a bucket of gradients by the tree again and again, for so long or somewhat longer. All
/// ranks call this at once. Throws: as time_all_reduces().
void repeat_all_reduces(const RankMemory& between, um::Nanoseconds duration);

/// Both: what the ranks are connected by. Requires: at least two ranks.
[[nodiscard]] prefetch::Interconnect measure_interconnect(const RankMemory& between);

/// The step in which a rank computes meanwhile, with the times of its tasks.
struct ExchangeLoad {
  ExecutionContext& context;
  const Step& step;
  const prefetch::Profile& profile;
  um::Bytes limit;  ///< of near memory, which is given back
};

/// How fast the step's longest task runs while ranks add up a bucket of gradients again and again,
/// relative to undisturbed: that of the slowest rank, at most 1. All ranks call this at once, and
/// get the same. Throws: what a Communicator throws; um::OutOfMemory.
[[nodiscard]] double compute_speed_while_exchanging(const RankMemory& between,
                                                    const ExchangeLoad& load);

}  // namespace spillway
