#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
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

}  // namespace spillway::prefetch
