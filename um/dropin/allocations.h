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

/// The live allocations of a slab and the pages they occupy. Handles offsets only.
///
/// Thread safety: none.
class Allocations {
 public:
  /// Bytes at an offset of the slab.
  struct Span {
    Bytes offset;
    Bytes size;
  };

  /// The unit of sizes and the smallest alignment.
  static constexpr Bytes kUnit{64};

  /// Requires: `slab` is a multiple of `page`, and `page` a multiple of kUnit.
  Allocations(Bytes slab, Bytes page);

  /// Returns the offset of `size` bytes at a multiple of `alignment`, and of a page when `size` is
  /// at least a page. Returns nullopt without room. Complexity: O(pages), and that of
  /// Arena::allocate().
  [[nodiscard]] std::optional<Bytes> allocate(Bytes size, Bytes alignment);
  /// Ends an allocation, which keeps its room until free(). Requires: starts_at(offset).
  void end(Bytes offset);
  /// Frees an allocation, ended or not. Returns the whole pages that became empty, merged into
  /// spans. Requires: `offset` is allocated and not freed.
  [[nodiscard]] std::vector<Span> free(Bytes offset);

  /// Returns whether a live allocation starts at `offset`.
  [[nodiscard]] bool starts_at(Bytes offset) const;
  /// Returns the live allocation that contains the byte at `offset`.
  [[nodiscard]] std::optional<Span> around(Bytes offset) const;

  /// Returns the allocated bytes, rounded up to units.
  [[nodiscard]] Bytes in_use() const { return arena_.in_use(); }
  [[nodiscard]] Bytes size() const { return arena_.size(); }

 private:
  struct Entry {
    Bytes size;  // as requested
    bool is_live;
  };

  Bytes page_;
  Arena arena_;
  std::map<std::uint64_t, Entry> entries_;  // by offset
  std::vector<std::uint32_t> on_page_;      // allocations that overlap each page
};

/// Counts started and ended moves, to wait for all moves so far. Moves in one direction end in the
/// order of their start, as um::Hints guarantees.
///
/// Thread safety: any thread may call every function.
class MovesUnderWay {
 public:
  void start(MemoryTier to);
  /// Like start(), but first blocks until fewer than `max` moves are in flight in that direction.
  void start_below(std::uint64_t max, MemoryTier to);
  /// Matches one start(), and may be called slightly before it.
  void end(MemoryTier to) noexcept;
  /// Blocks until all moves started so far have ended.
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

/// An invalid request of a drop-in user. `what()` is one clear sentence.
class Misuse : public Error {
 public:
  using Error::Error;
};

/// An address outside all live allocations, or a range that leaves its allocation.
class NotAllocated final : public Misuse {
 public:
  using Misuse::Misuse;
};

}  // namespace spillway::um
