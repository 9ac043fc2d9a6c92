#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Where a block or the workspace lies in the arena of the copy mode, while it does.
struct CopySegment {
  bool is_allocated = false;
  um::Bytes offset;
  um::Bytes size;
};

/// The segments of a step: one for each block, and one for the workspace of the current run.
class CopySegments {
 public:
  explicit CopySegments(std::size_t blocks) : segments_(blocks + 1) {}

  [[nodiscard]] CopySegment& block(DataId id) {
    return segments_[static_cast<std::size_t>(id) + 1];
  }
  [[nodiscard]] const CopySegment& block(DataId id) const {
    return segments_[static_cast<std::size_t>(id) + 1];
  }
  [[nodiscard]] CopySegment& workspace() { return segments_.front(); }
  [[nodiscard]] const CopySegment& workspace() const { return segments_.front(); }
  [[nodiscard]] std::span<CopySegment> all() { return segments_; }

 private:
  std::vector<CopySegment> segments_;
};

}  // namespace spillway::prefetch
