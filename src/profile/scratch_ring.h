#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway {

/// Places the blocks of one task after the other in a piece of memory, round and round: a block
/// stays where its last task found it until newer ones have overwritten it. So the processor's
/// caches hold about what they would hold in a whole step: what was just made, not what is long
/// gone.
class ScratchRing {
 public:
  /// A block, or scratch bytes of the task alone.
  struct Piece {
    std::optional<prefetch::DataId> block;
    um::Bytes size;
  };

  struct Place {
    std::byte* address;
    bool is_new;  ///< what the block held is lost: other bytes are there
  };

  explicit ScratchRing(um::Range memory) : memory_{memory} {}

  /// Where all `pieces` are, each block once, none overlapping another. Requires: together
  /// they are not larger than the memory; sizes are multiples of whatever alignment is wanted.
  std::vector<Place> place(std::span<const Piece> pieces);

 private:
  // Positions count bytes from the first round on; the address is what is left of them modulo the
  // size of the memory.
  [[nodiscard]] std::uint64_t skip_to_fit(std::uint64_t position, um::Bytes size) const;
  [[nodiscard]] bool is_kept(const Piece& piece, std::uint64_t end) const;
  [[nodiscard]] std::uint64_t find_end(std::span<const Piece> pieces, std::uint64_t kept) const;

  um::Range memory_;
  std::uint64_t head_ = 0;  // the position of the next block
  std::unordered_map<std::uint32_t, std::uint64_t> positions_;
};

}  // namespace spillway
