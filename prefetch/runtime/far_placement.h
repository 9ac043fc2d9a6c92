#pragma once

#include <vector>

#include "prefetch/runtime/step_layout.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Where the blocks that a plan offloads lie in far memory.
struct FarPlacement {
  explicit FarPlacement(const StepLayout& layout);
  std::vector<um::Bytes> offsets;  ///< by DataId; meaningless for blocks that stay near
  um::Bytes extent;
};

}  // namespace spillway::prefetch
