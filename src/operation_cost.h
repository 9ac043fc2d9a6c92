#pragma once

#include "src/operation.h"

namespace spillway {

/// What an operation does at least, for a roofline model: arithmetic with the direct algorithm, and
/// each operand moved once.
struct OperationCost {
  double flops = 0;  ///< a multiply-add counts as two
  um::Bytes traffic;
};

[[nodiscard]] OperationCost cost_of(const Operation& operation);

/// True when the operation is cheap and running it again in the same step gives the same bits:
/// everything that makes no use of weights' gradients and is bound by memory, not arithmetic.
[[nodiscard]] bool is_recomputable(const Operation& operation);

}  // namespace spillway
