#pragma once

#include <cstdint>
#include <map>

#include "prefetch/learned/block_name.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Names the blocks that live: what was allocated since the first iteration mark by its birth, for
/// as long as it is younger than kOld iterations; all else by its owner's id.
class LiveBlocks {
 public:
  /// Iterations after which a block counts as one that was always there.
  static constexpr std::uint64_t kOld = 4;

  struct Block {
    BlockName name;
    um::Bytes size;
  };

  void begin_iteration() {
    ++iteration_;
    next_ordinal_ = 0;
  }
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }

  /// Complexity of each: O(log blocks).
  void allocate(std::uint64_t block, um::Bytes size);
  void free(std::uint64_t block) { blocks_.erase(block); }
  /// The block is in use: one that was there before the first mark shows itself so.
  void see(std::uint64_t block, um::Bytes size);
  [[nodiscard]] BlockName name(std::uint64_t block) const;

  /// All that are known, by the owner's id; their births are not forgotten.
  [[nodiscard]] const std::map<std::uint64_t, Block>& all() const { return blocks_; }

 private:
  std::uint64_t iteration_ = 0;
  std::uint64_t next_ordinal_ = 0;
  std::map<std::uint64_t, Block> blocks_;
};

}  // namespace spillway::prefetch
