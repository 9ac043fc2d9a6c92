#pragma once

#include "um/hints.h"
#include "um/range.h"
#include "um/stream.h"

namespace spillway::um {

/// Gives `range` near memory for moves: populate() gives it only to what streams are told from then
/// on, and a move would meet it. `idle` has no work. Throws: Error when the device fails.
inline void populate_now(Hints& hints, Range range, Stream& idle) {
  hints.populate(range);
  idle.synchronize();
}

}  // namespace spillway::um
