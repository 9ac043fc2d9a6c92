#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// AutoSwap (Zhang et al. 2019), as Beaumont et al. describe it (section 6): a weighted sum of four
/// priority scores decides which blocks are swapped, one after the other until the budget is kept.
/// The scores of a block, where load is the near memory in use when nothing moves, or with the
/// blocks already chosen swapped:
/// - DOA, duration of absence: the time between its last use before and its first use after;
/// - AOA, area of absence: DOA less its two transfers, times its size (divided, where negative);
/// - WDOA, weighted duration of absence: the integral of load - budget over its absence;
/// - SWDOA, submodular WDOA: the same with the load that the choices so far leave.
/// Each is divided by the largest magnitude among the blocks, which the sources leave open. Only
/// blocks are asked whose absence helps where the budget is still exceeded.
///
/// The paper finds the weights by Bayesian optimisation; here a seeded random search does, with 32
/// simulated plans: the four corners, the centre, then draws from the whole simplex and from around
/// the best, in turns. As in Beaumont's comparison only the choice of blocks is AutoSwap's;
/// prefetches start as early as there is room, in order of use. Algorithms: each task gets the
/// fastest whose workspace fits when everything is away. Whole blocks; nothing is recomputed.
class Autoswap final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "autoswap"; }
  [[nodiscard]] std::string_view description() const override {
    return "swap blocks by a weighted sum of four priority scores; best weights (AutoSwap)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
