#pragma once

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/profile/interconnect_profiler.h"
#include "src/step/step.h"
#include "um/bytes.h"

namespace spillway {

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
