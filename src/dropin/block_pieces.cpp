#include "src/dropin/block_pieces.h"

#include <algorithm>
#include <cstddef>

namespace spillway::dropin {
namespace {

constexpr um::Bytes kLargestPiece{16ULL << 20U};
constexpr std::uint64_t kPiecesNear = 64;

}  // namespace

PieceSize choose_pieces(um::Bytes near, um::Bytes page) {
  const um::Bytes share =
      um::round_down(std::min(kLargestPiece, um::Bytes{near.count() / kPiecesNear}), page);
  return {.page = page, .piece = std::max(page, share)};
}

std::vector<um::Range> pieces_of(um::Range allocation, um::Range part, const PieceSize& size) {
  std::vector<um::Range> pieces;
  const std::size_t all = allocation.size();
  if (all < size.page.count() || part.empty()) return pieces;
  const std::size_t piece = size.piece.count();
  const std::size_t rest = all % piece;
  const std::size_t count = all / piece + (rest >= size.page.count() || all < piece ? 1 : 0);
  const auto begin = static_cast<std::size_t>(part.data() - allocation.data());
  const std::size_t last = std::min(count - 1, (begin + part.size() - 1) / piece);
  for (std::size_t i = std::min(count - 1, begin / piece); i <= last; ++i) {
    const std::size_t end = i + 1 == count ? all : (i + 1) * piece;
    pieces.push_back(allocation.subspan(i * piece, end - i * piece));
  }
  return pieces;
}

}  // namespace spillway::dropin
