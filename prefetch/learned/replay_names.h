#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "prefetch/learned/block_name.h"

namespace spillway::prefetch {

/// Which live block is which block of a replay plan: of a cycle of so many iterations, those
/// allocated in the same iteration of it by the same ordinal follow one another under one name.
class ReplayNames {
 public:
  explicit ReplayNames(std::uint64_t cycle) : cycle_{cycle} {}

  struct Claim {
    BlockName name;              ///< in the replay plan, if it has that block
    bool has_displaced = false;  ///< another live block had the name until now
  };
  /// What the block of this name is called from now on: as long as it lives, or until another one
  /// claims its name. Complexity of each: O(log blocks).
  Claim claim(std::uint64_t block, const BlockName& name);
  /// The block is no more. Returns what it was called.
  std::optional<BlockName> release(std::uint64_t block);
  [[nodiscard]] std::optional<std::uint64_t> owner(const BlockName& name) const;

 private:
  std::uint64_t cycle_;
  std::map<std::uint64_t, BlockName> names_;   // by block
  std::map<BlockName, std::uint64_t> owners_;  // the reverse
};

}  // namespace spillway::prefetch
