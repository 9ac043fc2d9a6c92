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

/// What is decided about moves before a sequence of runs is planned.
struct OffloadOptions {
  CoverOptions cover;
  /// Bytes of the pool that cover() leaves to what comes early (return_early()).
  um::Bytes kept_free;
};

/// Searches where offloadable state is between steps, how much room is kept free for what comes
/// early, and whether what leaves without a copy goes first.
///
/// State is looked at in order of by_idle_time(), page by page: its first part is far, a part after
/// that near with a valid far copy, then a part far again, the rest near. So what is updated last
/// and used first in the next step has neither a move before its first use nor one after its update
/// to wait for, and what is updated soon before need not come back in the same step. The parts
/// are searched for in 256ths of all state: first on a grid, then downhill from two points,
/// then by random changes. Deterministic.
class HomeSearch {
 public:
  /// How long the plan with these options takes; nothing where there is none. Pure.
  using Evaluation = std::function<std::optional<um::Nanoseconds>(const OffloadOptions&)>;

  /// `start`: how blocks are cut, and what must be far. What is passed must outlive it.
  HomeSearch(const BlockSizes& block_sizes, std::span<const Life> lives, um::Bytes pool,
             const CoverOptions& start);

  /// The best options found with at most so many evaluations. Stops at a plan that takes no longer
  /// than `good_enough`.
  [[nodiscard]] OffloadOptions search(const Evaluation& evaluate, int evaluations,
                                      um::Nanoseconds good_enough);

 private:
  // The parts in order, in 256ths of all state, and of the pool, in 64ths.
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

/// The offloadable state among `lives`. What is idle longest between its last use in a step and its
/// first use in the next one comes first: it gains most from being far between steps.
[[nodiscard]] std::vector<DataId> by_idle_time(const BlockSizes& block_sizes,
                                               std::span<const Life> lives);

/// By block, what updates on the far side leave no choice about: their gradients and parameters are
/// far, whole.
[[nodiscard]] std::vector<HomeBytes> homes_for_far_updates(const TaskGraph& graph,
                                                           const BlockSizes& block_sizes);

/// The far intervals with which what is far by `options.homes` begins a step. Each lasts up to the
/// block's first use, and has at most `options.chunk` bytes unless whole blocks move.
[[nodiscard]] std::vector<FarInterval> far_intervals_from_start(const BlockSizes& block_sizes,
                                                                std::span<const Life> lives,
                                                                const CoverOptions& options);

/// What has a valid far copy as the step begins, and is near, by `options.homes`.
[[nodiscard]] std::vector<FarInterval> copies_from_start(std::span<const Life> lives,
                                                         const CoverOptions& options);

/// Swaps that leave the far copies of copies_from_start() valid for the next step, of those that
/// `far_intervals` count on and that are written: out after the last use, back before the step
/// ends. `before`: by run, and for the end, the time of all runs before it, by which a swap may
/// take `out`, bytes a second, and as much again.
[[nodiscard]] std::vector<Swap> renewals(std::span<const FarInterval> far_intervals,
                                         std::span<const Life> lives,
                                         std::span<const double> before, double out,
                                         const CoverOptions& options);

}  // namespace spillway::prefetch
