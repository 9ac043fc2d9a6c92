#pragma once

#include "src/ops/operation.h"

namespace spillway {

/// What an operation does at least, for a roofline model: arithmetic with the direct algorithm, and
/// each operand moved once.
struct OperationCost {
  double flops = 0;  ///< a multiply-add counts as two
  um::Bytes traffic;
};

[[nodiscard]] OperationCost cost_of(const Operation& operation);

}  // namespace spillway
