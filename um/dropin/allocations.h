#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "um/arena.h"
#include "um/bytes.h"
#include "um/error.h"
#include "um/memory.h"

namespace spillway::um {

/// The live allocations of a slab, and which of its pages have one. Knows offsets only.
///
/// Thread safety: none.
class Allocations {
 public:
  /// Bytes at an offset of the slab.
  struct Span {
    Bytes offset;
    Bytes size;
  };

  /// The unit of sizes and the least alignment.
  static constexpr Bytes kUnit{64};

  /// Requires: `slab` is a multiple of `page`, and `page` one of kUnit.
  Allocations(Bytes slab, Bytes page);

  /// The offset of `size` bytes, which is a multiple of `alignment`, and of a page when they are as
  /// large as one. Nothing when there is no room. Complexity: O(pages), and as Arena::allocate().
  [[nodiscard]] std::optional<Bytes> allocate(Bytes size, Bytes alignment);
  /// The allocation is over, but keeps its room until free(). Requires: starts_at(offset).
  void end(Bytes offset);
  /// The whole pages that nothing is on any more, as few spans as can be.
  /// Requires: `offset` has been allocated and not freed, ended or not.
  [[nodiscard]] std::vector<Span> free(Bytes offset);

  /// Whether a live allocation does.
  [[nodiscard]] bool starts_at(Bytes offset) const;
  /// The live allocation that the byte at `offset` is of.
  [[nodiscard]] std::optional<Span> around(Bytes offset) const;

  /// Bytes taken, in units.
  [[nodiscard]] Bytes in_use() const { return arena_.in_use(); }
  [[nodiscard]] Bytes size() const { return arena_.size(); }

 private:
  struct Entry {
    Bytes size;  // as asked for
    bool is_live;
  };

  Bytes page_;
  Arena arena_;
  std::map<std::uint64_t, Entry> entries_;  // by offset
  std::vector<std::uint32_t> on_page_;      // how many allocations have a byte of it
};

/// Counts the moves that were started and those that have ended, for whoever waits for all so far.
/// Moves in one direction end in the order in which they were started, as um::Hints has it.
///
/// Thread safety: every function may be called from any thread.
class MovesUnderWay {
 public:
  void start(MemoryTier to);
  /// As start(), once fewer than `most` moves are under way in that direction; until then it
  /// blocks.
  void start_below(std::uint64_t max, MemoryTier to);
  /// Each start() has one, which may come a moment before it.
  void end(MemoryTier to) noexcept;
  /// Blocks until the moves started so far have ended.
  void wait();

 private:
  struct Count {
    std::uint64_t started = 0;
    std::uint64_t ended = 0;
  };

  [[nodiscard]] Count& of(MemoryTier to) { return counts_[to == MemoryTier::kNear ? 0 : 1]; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Count, 2> counts_;  // by direction
};

/// The user of a drop-in allocator asked for what makes no sense. `what()` is one clear sentence.
class Misuse : public Error {
 public:
  using Error::Error;
};

/// An address that no live allocation has, or a range that leaves its allocation.
class NotAllocated final : public Misuse {
 public:
  using Misuse::Misuse;
};

}  // namespace spillway::um
