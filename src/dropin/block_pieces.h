#pragma once

#include <vector>

#include "um/bytes.h"

namespace spillway::dropin {

/// How learned prefetch cuts allocations into blocks, which it records and moves as wholes.
struct PieceSize {
  um::Bytes page;   ///< what is smaller is left alone: it shares its pages with others
  um::Bytes piece;  ///< a multiple of the page
};

/// Pieces that are a small part of near memory, and large enough to be moved well.
[[nodiscard]] PieceSize choose_pieces(um::Bytes near, um::Bytes page);

/// The pieces of `allocation` that `part` has bytes of, in order of address: the last piece also
/// has what is left over, less than a page. Requires: `part` lies in `allocation`.
/// Complexity: O(pieces).
[[nodiscard]] std::vector<um::Range> pieces_of(um::Range allocation, um::Range part,
                                               const PieceSize& size);

}  // namespace spillway::dropin
