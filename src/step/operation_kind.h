#pragma once

#include "prefetch/task_graph.h"
#include "src/ops/operation.h"

namespace spillway {

/// What planners are told about the operation. Backward operations and updates are kOther; a fused
/// ReLU does not count.
[[nodiscard]] prefetch::TaskKind kind_of(const Operation& operation);

/// True when running the operation again in the same step gives the same bits: everything on the
/// way forward but the batch, which is loaded once, and the loss, whose result is the step's.
[[nodiscard]] bool is_recomputable(const Operation& operation);

}  // namespace spillway
