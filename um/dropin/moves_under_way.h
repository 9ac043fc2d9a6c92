#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "um/memory_tier.h"

namespace spillway::um {

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

}  // namespace spillway::um
