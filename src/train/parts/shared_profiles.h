#pragma once

#include <span>
#include <vector>

#include "prefetch/profile.h"
#include "src/step/sub_step.h"
#include "src/train/parts/rank_training.h"
#include "um/memory.h"

namespace spillway {

/// Gives all ranks the first one's times of the tasks that it has, by name, and of its link, so
/// that ranks with the same steps make the same plans; and to the last of the steps what its
/// exchanges take, as measured now between the ranks. `profiles` are those of `steps`, on the same
/// kind of machine; `memory` is near. Throws: what Communicator throws;
/// um::OutOfMemory.
void share_profiles(const RankOptions& ranks, std::span<const RepeatedStep> steps,
                    um::Memory& memory, std::vector<prefetch::Profile>& profiles);

}  // namespace spillway
