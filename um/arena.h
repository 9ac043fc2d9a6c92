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
  /// Nothing when no single segment fits. Complexity: O(log(segments)), but for free segments that
  /// are large enough and have no aligned offset.
  [[nodiscard]] std::optional<Bytes> allocate(Bytes size);
  /// The same at an offset that is a multiple of `alignment`, a power of two; less than the arena's
  /// own means that.
  [[nodiscard]] std::optional<Bytes> allocate(Bytes size, Bytes alignment);
  /// Requires: `offset` is allocated.
  void free(Bytes offset);

  /// A segment that changes place.
  struct Slide {
    Bytes from;
    Bytes to;
    Bytes size;
    /// The largest free segment, where it is above both. The segments above that slide by at least
    /// its size, and have none.
    Bytes spare;
    Bytes spare_size;
  };

  /// Slides every allocated segment towards offset 0 so that all free bytes become one segment
  /// (moDNN's defragmentation, without the detour over far memory). Calls `slide` for each segment
  /// that changes place, in ascending order, so that a memmove is right.
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
  [[nodiscard]] Segment largest_free() const;  // of size 0 when there is none

  Bytes size_;
  Bytes alignment_;
  Bytes in_use_;
  Segments segments_;                                                // in address order, no gaps
  std::unordered_map<std::uint64_t, Segments::iterator> allocated_;  // by offset
  std::map<std::pair<Bytes, Bytes>, Segments::iterator> free_;       // by size, then offset
};

}  // namespace spillway::um
