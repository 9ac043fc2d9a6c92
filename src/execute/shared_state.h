#pragma once

#include <span>
#include <vector>

#include "prefetch/state_home.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway {

/// Where each of several steps of a network has the movable state that they share: a block of one
/// name is in one place. `page` as in their plans. In the order of `graphs`.
[[nodiscard]] std::vector<prefetch::StatePlaces> share_state(
    std::span<const prefetch::TaskGraph* const> graphs, um::Bytes page);

}  // namespace spillway
