#pragma once

#include <cstddef>

#include "src/step/step.h"

namespace spillway {

/// Drops the tasks on the way back that make only what nobody reads, and the blocks that are then
/// of no task: gradients of frozen parameters, and of activations that only these needed. To be
/// called before state may move. Blocks and tasks are numbered anew.
void drop_unread_tasks(Step& step);

/// How much of a network a training step leaves as it is.
struct FrozenParameters {
  std::size_t parameters = 0;
  std::size_t layers = 0;
};

/// Parameters of a training step, of any kind, that have nothing of an optimizer beside them.
[[nodiscard]] FrozenParameters count_frozen(const Step& training);

}  // namespace spillway
