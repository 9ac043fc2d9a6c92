#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <unordered_map>

#include "um/bytes.h"

namespace spillway::um {

/// Divides a range of `size` bytes into segments: best fit over a list of segments linked in
/// address order, neighbours joined when freed. The pool of moDNN section IV and SuperNeurons
/// section 3.2.1. Knows offsets only, touches no memory.
///
/// Thread safety: none.
class Arena {
 public:
  /// Every offset and size is rounded to `alignment`, a power of two.
  Arena(Bytes size, Bytes alignment);

  /// The offset of a free segment of at least `size`: the smallest that fits, the lowest of equals.
  /// Nothing when no single segment fits. Complexity: O(segments).
  [[nodiscard]] std::optional<Bytes> allocate(Bytes size);
  /// Requires: `offset` is allocated.
  void free(Bytes offset);

  /// Slides every allocated segment towards offset 0 so that all free bytes become one segment
  /// (moDNN's defragmentation, without the detour over far memory). Calls `move(from, to, size)`
  /// for each segment that changes place, in ascending order, so that a memmove is right.
  void compact(const std::function<void(Bytes from, Bytes to, Bytes size)>& move);

  [[nodiscard]] Bytes size() const { return size_; }
  [[nodiscard]] Bytes in_use() const { return in_use_; }

 private:
  struct Segment {
    Bytes offset;
    Bytes size;
    bool is_free;
  };
  using Segments = std::list<Segment>;

  void join_with_next(Segments::iterator segment);

  Bytes size_;
  Bytes alignment_;
  Bytes in_use_;
  Segments segments_;                                                // in address order, no gaps
  std::unordered_map<std::uint64_t, Segments::iterator> allocated_;  // by offset
};

}  // namespace spillway::um
