#pragma once

#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Where the movable state of steps that share it lies in one region of addresses: the beginning of
/// the slab (resident and managed modes) and of far memory (copy mode).
struct StatePlaces {
  std::vector<um::Bytes> offsets;  ///< by DataId of one graph; meaningless for other blocks
  um::Bytes extent;                ///< of all of it, also of blocks that this graph lacks
};

/// Those of a graph whose state no other step shares: one block after the other in order of DataId,
/// each in whole pages.
[[nodiscard]] StatePlaces place_state(const TaskGraph& graph, const BlockSizes& block_sizes);

}  // namespace spillway::prefetch
