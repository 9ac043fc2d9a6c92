#pragma once

#include <optional>
#include <span>
#include <vector>

#include "prefetch/interconnect.h"
#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/step/sub_step.h"
#include "src/train/parts/rank_training.h"
#include "um/bytes.h"

namespace spillway {

/// Gives all ranks the first one's times of the tasks that it has, by name, and of its link, so
/// that ranks with the same steps make the same plans; and to the last of the steps what its
/// exchanges take, and tasks beside them, as measured now between the ranks: for tasks within
/// `limit` of near memory, beside which exchanges take some mebibytes; all is given back.
/// `profiles` are those of `steps`, on the same kind of machine. Returns what was measured; nothing
/// where there is one rank. Throws: what Communicator throws; um::OutOfMemory.
std::optional<prefetch::Interconnect> share_profiles(const RankOptions& ranks,
                                                     ExecutionContext& context, um::Bytes limit,
                                                     std::span<const RepeatedStep> steps,
                                                     std::vector<prefetch::Profile>& profiles);

}  // namespace spillway
