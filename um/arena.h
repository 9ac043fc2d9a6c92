#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "um/bytes.h"

namespace spillway::um {

/// Divides a range of `size` bytes into segments: best fit over a list of segments in address
/// order. Freed neighbours are joined. This is the pool of moDNN section IV and SuperNeurons
/// section 3.2.1. Handles offsets only and touches no memory.
///
/// Thread safety: none.
class Arena {
 public:
  /// Rounds every offset and size up to `alignment`, a power of two.
  Arena(Bytes size, Bytes alignment);

  /// Returns the offset of the smallest free segment that fits, the lowest of equals. Returns
  /// nullopt when no single segment fits. Complexity: O(log(segments)), plus the free segments that
  /// are large enough only before alignment.
  [[nodiscard]] std::optional<Bytes> allocate(Bytes size);
  /// As above, at a multiple of the larger of `alignment`, a power of two, and the arena's own.
  [[nodiscard]] std::optional<Bytes> allocate(Bytes size, Bytes alignment);
  /// Requires: `offset` is allocated.
  void free(Bytes offset);

  /// One segment that compact() moves.
  struct Slide {
    Bytes from;
    Bytes to;
    Bytes size;
    /// The largest free segment if it lies above `from`, otherwise empty. Segments above it get no
    /// spare memory, but slide by at least its size.
    Bytes spare;
    Bytes spare_size;
  };

  /// Slides every allocated segment towards offset 0, so that all free bytes become one segment.
  /// This is moDNN's defragmentation without the detour over far memory. Calls `slide` for each
  /// moved segment in ascending order, so that a memmove is safe.
  void compact(const std::function<void(const Slide&)>& slide);

  [[nodiscard]] Bytes size() const { return size_; }
  [[nodiscard]] Bytes in_use() const { return in_use_; }

 private:
  struct Segment {
    Bytes offset;
    Bytes size;
    bool is_free;
  };
  using Segments = std::list<Segment>;

  void add_free(Segments::iterator segment);
  void remove_free(Segments::iterator segment);
  [[nodiscard]] Segment largest_free() const;  // size 0 when no segment is free

  Bytes size_;
  Bytes alignment_;
  Bytes in_use_;
  Segments segments_;                                                // in address order, no gaps
  std::unordered_map<std::uint64_t, Segments::iterator> allocated_;  // by offset
  std::map<std::pair<Bytes, Bytes>, Segments::iterator> free_;       // by size, then offset
};

}  // namespace spillway::um
