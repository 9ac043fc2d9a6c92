#include "src/profile/scratch_ring.h"

#include <algorithm>

#include "um/error.h"

namespace spillway {

std::uint64_t ScratchRing::skip_to_fit(std::uint64_t position, um::Bytes size) const {
  const std::uint64_t all = memory_.size();
  return position % all + size.count() > all ? (position / all + 1) * all : position;
}

// Whether the piece is a block that lies in the ring and still would when it was filled to `end`.
bool ScratchRing::is_kept(const Piece& piece, std::uint64_t end) const {
  if (!piece.block) return false;
  const auto found = positions_.find(static_cast<std::uint32_t>(*piece.block));
  return found != positions_.end() && found->second + memory_.size() >= end;
}

// Where the head would be when all pieces had been placed that are not kept with the head at
// `kept`.
std::uint64_t ScratchRing::find_end(std::span<const Piece> pieces, std::uint64_t kept) const {
  std::uint64_t end = head_;
  for (const Piece& piece : pieces) {
    if (!is_kept(piece, kept)) end = skip_to_fit(end, piece.size) + piece.size.count();
  }
  return end;
}

std::vector<ScratchRing::Place> ScratchRing::place(std::span<const Piece> pieces) {
  um::Bytes total;
  for (const Piece& piece : pieces) total += piece.size;
  um::expects(total.count() <= memory_.size(), "the pieces of a task fit in the ring");
  if (total == um::Bytes{}) {
    return std::vector<Place>(pieces.size(), {.address = memory_.data(), .is_new = true});
  }

  // What must be placed may overwrite what was to be kept, and so on.
  std::uint64_t end = head_;
  for (std::uint64_t next = find_end(pieces, end); next != end; next = find_end(pieces, end)) {
    end = next;
  }
  const bool none_is_kept =
      std::ranges::none_of(pieces, [&](const Piece& piece) { return is_kept(piece, end); });
  if (none_is_kept && end - head_ > memory_.size()) {  // a part of the ring is skipped
    head_ = skip_to_fit(head_, um::Bytes{memory_.size()});
    end = head_ + total.count();
  }

  std::vector<Place> places;
  for (const Piece& piece : pieces) {
    const bool is_new = !is_kept(piece, end);
    std::uint64_t position = 0;
    if (!is_new) {
      position = positions_.at(static_cast<std::uint32_t>(*piece.block));
    } else {
      position = skip_to_fit(head_, piece.size);
      head_ = position + piece.size.count();
      if (piece.block) positions_[static_cast<std::uint32_t>(*piece.block)] = position;
    }
    places.push_back({.address = memory_.data() + position % memory_.size(), .is_new = is_new});
  }
  return places;
}

}  // namespace spillway
