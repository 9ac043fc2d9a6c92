#pragma once

#include <vector>

#include "um/bytes.h"

namespace spillway::dropin {

/// The sizes by which learned prefetch cuts allocations into blocks, the units it records and
/// moves.
struct PieceSize {
  um::Bytes page;   ///< smaller allocations are ignored: they share their pages
  um::Bytes piece;  ///< a multiple of the page
};

/// Chooses pieces that are a small part of near memory, but large enough to move efficiently.
[[nodiscard]] PieceSize choose_pieces(um::Bytes near, um::Bytes page);

/// Returns the pieces of `allocation` that `part` overlaps, in order of address. The last piece
/// includes a rest of less than a page. Requires: `part` lies in `allocation`. Complexity:
/// O(pieces).
[[nodiscard]] std::vector<um::Range> pieces_of(um::Range allocation, um::Range part,
                                               const PieceSize& size);

}  // namespace spillway::dropin
