#pragma once

#include <string>

#include "um/bytes.h"
#include "um/copies.h"
#include "um/counters.h"
#include "um/hints.h"
#include "um/range.h"
#include "um/stream.h"

namespace spillway::um {

/// Near memory and a far store beside it, moved by explicit copies.
class CopySpace {
 public:
  virtual ~CopySpace() = default;
  /// The near memory, page-aligned and always mapped.
  [[nodiscard]] virtual Range near() = 0;
  [[nodiscard]] virtual Copies& copies() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  /// For the run's summary: "far file in /scratch, direct I/O".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// A slab of unified memory: more address space than near memory, moved by hints and page faults.
class ManagedSpace {
 public:
  virtual ~ManagedSpace() = default;
  /// All its addresses, page-aligned. May be read and written by any thread.
  [[nodiscard]] virtual Range slab() = 0;
  [[nodiscard]] virtual Hints& hints() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  /// How many bytes of `range` are near now; on a GPU, as the hints given so far leave it: its
  /// page faults are seen by nobody. Requires: `range` is of the slab; it may begin and end within
  /// a page. Complexity: O(pages).
  [[nodiscard]] virtual Bytes near_bytes(Range range) const = 0;
  /// For the run's summary: "uffd_move, 2 MiB pages, far RAM".
  [[nodiscard]] virtual std::string description() const = 0;
};

/// Gives `range` near memory for moves: populate() gives it only to what streams are told from then
/// on, and a move would meet it. `idle` has no work. Throws: Error when the device fails.
inline void populate_now(ManagedSpace& space, Range range, Stream& idle) {
  space.hints().populate(range);
  idle.synchronize();
}

}  // namespace spillway::um
