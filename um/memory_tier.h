#pragma once

namespace spillway::um {

/// The two memories: the fast small one next to the processor, and the large slow one.
enum class MemoryTier { kNear, kFar };

}  // namespace spillway::um
