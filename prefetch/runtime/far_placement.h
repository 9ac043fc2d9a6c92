#pragma once

#include <vector>

#include "prefetch/runtime/step_layout.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Where the blocks that a plan offloads lie in far memory: state at the places of
/// StepLayout::state, everything else behind it.
struct FarPlacement {
  explicit FarPlacement(const StepLayout& layout);
  std::vector<um::Bytes> offsets;  ///< by DataId; meaningless for tensors that stay near
  um::Bytes extent;
};

}  // namespace spillway::prefetch
