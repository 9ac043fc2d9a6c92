#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/schedule.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Decisions about moves that precede planning a sequence of runs.
struct OffloadOptions {
  CoverOptions cover;
  /// Bytes of the pool that cover() keeps free for early prefetches (return_early()).
  um::Bytes kept_free;
};

/// Searches where offloadable state is between steps, how much room is kept free for early
/// prefetches, and whether blocks that leave without a copy go first.
///
/// State is ordered by by_idle_time() and cut at pages into parts: far, near with a valid far copy,
/// far again, near. State that is updated last and used first in the next step then waits for
/// neither a move before its first use nor one after its update. State that is updated shortly
/// before need not return in the same step. The sizes of the parts are searched in 256ths of all
/// state: first on a grid, then by descent from two points, then by random changes. Deterministic.
class HomeSearch {
 public:
  /// Returns the makespan of the plan with these options; nullopt if there is none. Pure.
  using Evaluation = std::function<std::optional<um::Nanoseconds>(const OffloadOptions&)>;

  /// `start`: how to cut blocks, and what must be far. All arguments must outlive it.
  HomeSearch(const BlockSizes& block_sizes, std::span<const Life> lives, um::Bytes pool,
             const CoverOptions& start);

  /// Returns the best options found with at most `evaluations` evaluations. Stops at a plan that
  /// takes at most `good_enough`.
  [[nodiscard]] OffloadOptions search(const Evaluation& evaluate, int evaluations,
                                      um::Nanoseconds good_enough);

 private:
  // The consecutive parts in 256ths of all state, and of the pool in 64ths.
  struct Shares {
    int far = 0;
    int copied = 0;
    int far_again = 0;
    int kept_free = 0;
    int kept_free_if_free = 0;
    bool free_first = false;
  };

  [[nodiscard]] OffloadOptions options_of(const Shares& shares) const;
  [[nodiscard]] um::Bytes end_of(int shares) const;
  [[nodiscard]] um::Bytes within(um::Bytes begin, um::Bytes size, um::Bytes from,
                                 um::Bytes to) const;
  [[nodiscard]] static std::vector<Shares> grid();
  [[nodiscard]] static std::vector<Shares> neighbours(const Shares& shares, int step);
  struct Found {
    Shares shares;
    um::Nanoseconds makespan = um::Nanoseconds::max();
  };
  bool improve(const std::vector<Shares>& candidates, Found& best);
  void descend(Found& best);
  void wander(Found& best);

  const BlockSizes& block_sizes_;
  um::Bytes pool_;
  const CoverOptions& start_;
  std::vector<DataId> order_;
  um::Bytes state_;

  const Evaluation* evaluate_ = nullptr;
  int left_ = 0;
  um::Nanoseconds good_enough_{0};
};

/// Returns the offloadable state among `lives`, longest idle first between its last use in a step
/// and its first use in the next: it gains most from being far between steps.
[[nodiscard]] std::vector<DataId> by_idle_time(const BlockSizes& block_sizes,
                                               std::span<const Life> lives);

/// Returns by block the homes that far updates require: their gradients and parameters are
/// completely far.
[[nodiscard]] std::vector<HomeBytes> homes_for_far_updates(const TaskGraph& graph,
                                                           const BlockSizes& block_sizes);

/// Returns the far intervals of state that is far when a step begins by `options.homes`. Each lasts
/// until the block's first use, and has at most `options.chunk` bytes unless whole blocks move.
[[nodiscard]] std::vector<FarInterval> far_intervals_from_start(const BlockSizes& block_sizes,
                                                                std::span<const Life> lives,
                                                                const CoverOptions& options);

/// Returns near state with a valid far copy when the step begins, by `options.homes`.
[[nodiscard]] std::vector<FarInterval> copies_from_start(std::span<const Life> lives,
                                                         const CoverOptions& options);

/// Returns swaps that renew written far copies of copies_from_start() for the next step, if
/// `far_intervals` count on the copies. A block leaves after its last use and returns before the
/// step ends. `before`: the time of all runs before each run, and before the end; `out`: bytes per
/// second. A swap takes twice its bytes' time.
[[nodiscard]] std::vector<Swap> renewals(std::span<const FarInterval> far_intervals,
                                         std::span<const Life> lives,
                                         std::span<const double> before, double out,
                                         const CoverOptions& options);

}  // namespace spillway::prefetch
