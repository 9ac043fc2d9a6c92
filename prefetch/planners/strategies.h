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
[[nodiscard]] std::variant<Plan, Infeasible> plan_autoswap(const Problem& problem);

/// The capacity-based strategy of UM-Chainer (Zhang et al., section 3.5): blocks leave whole, the
/// longest unused first, only until the rest fits in near memory, and come back as early as there
/// is room, whichever task is running. Each task has its fastest algorithm that fits when all else
/// is far, or its first where state that stays near leaves no room for workspaces. Recomputes
/// nothing (section 3.1).
///
/// The paper speaks of layers of a chain; here a block may leave in any gap between two uses.
[[nodiscard]] std::variant<Plan, Infeasible> plan_capacity(const Problem& problem);

/// Moves parts of blocks, and no more than must be away: at each task whatever is missing is taken
/// from the blocks used longest ago (Beaumont et al., section 4, Theorem 2: on a chain no plan that
/// only moves is shorter). Each comes back as early as memory
/// allows. Fast algorithms are taken back where their workspace costs more in moves than it saves.
/// Recomputes nothing. Where moves must take whole blocks it is the capacity-based strategy.
[[nodiscard]] std::variant<Plan, Infeasible> plan_fractional(const Problem& problem);

/// The out-of-core mode of IBM's Chainer as UM-Chainer describes it (sections 2.1, 3.4, 3.5
/// and 4.2: "vDNN-like"): whatever the budget, every layer swaps out what it saved when its forward
/// pass is concluded, the last layer included, and the end of the next layer waits for that; while
/// a layer's backward pass runs, what the layer before it needs is swapped in, and that layer waits
/// for it (Eq. 7: T = max(T_proc(l), T_swap(l-1))). The first layer of the backward pass waits for
/// its own data to go out and come back (Figure 3).
///
/// What a layer saved leaves after its last forward use. Where the room of a block is needed at
/// once, the next layer waits for its offload from the beginning: the paper does not say what
/// happens then. It is silent on algorithms, too: each task gets the fastest whose workspace fits.
/// Whole blocks; nothing is recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_ibm_ooc(const Problem& problem);

/// Offloads every block that the backward pass reads again, then takes offloads back: block by
/// block, the largest first, each stays near if it fits beside what is near already. Not published
/// under this name: a plain baseline for strategies that choose blocks.
///
/// Algorithms come first: each task gets the fastest whose workspace fits when everything is away.
/// Blocks of one size are taken in the order in which they leave. What is left to move is moved as
/// in the capacity-based strategy: prefetches as early as there is room. Whole blocks; nothing is
/// recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_largest_first(const Problem& problem);

/// No foresight. With unified memory: no hints at all, pages come by faults and leave by eviction;
/// such a page is Plan::page, which choose_page() makes smaller than 2 MiB where tensors are small.
/// With whole blocks, for explicit swapping: a block is fetched when a task needs it, the least
/// recently used blocks leave when room is needed, and the task waits for both.
[[nodiscard]] std::variant<Plan, Infeasible> plan_on_demand(const Problem& problem);

/// Recomputation alone, on any graph: outputs of cheap forward tasks are dropped and made again in
/// the backward pass; nothing is ever moved. Of the droppable blocks (find_recomputable(), cheapest
/// per byte first) it looks for a set with which every run fits:
/// 1. leading ones, on a grid of 32, made again once, or else for each use; the fastest that fits;
/// 2. where none fits, it goes on from the one that needs least, block by block: one that is live
///    at the run that needs most is dropped, or made again for each use if it was dropped already,
///    as long as the need falls;
/// 3. whatever need not be dropped after all is kept, or made again once instead of for each use,
///    the most expensive first, as long as that shortens the step.
/// Steps 1 and 2 do not look at the budget, but to stop, so what fits once fits in every larger
/// budget, too. At most 64 + 512 + 256 sequences are tried, of 2^17 runs at most, or 8 times the
/// tasks of the step, and of 2^24 runs together: of a step of 10^5 tasks some 160.
///
/// Algorithms are the first ones; each task then gets the fastest whose workspace fits beside what
/// is live at all its runs. A step that fits as it is recomputes nothing, and so does a problem
/// that allows no recomputation.
[[nodiscard]] std::variant<Plan, Infeasible> plan_recompute(const Problem& problem);

/// Moves nothing: everything stays near. Feasible only when the whole step fits.
[[nodiscard]] std::variant<Plan, Infeasible> plan_resident(const Problem& problem);

/// TFLMS (Le et al. 2018), as Beaumont et al. implement it (section 6): parameterised with the
/// number of saved tensors to offload, counted from the beginning of the network (its option
/// n_tensors), and with how many layers in advance they are prefetched (lb); the best configuration
/// is taken. Profiles serve to compare configurations, not within one: what moves when depends on
/// the graph alone, and all that was chosen moves, whether memory needs it or not.
///
/// Configurations: 0 to all tensors, 32 steps at most, in steps of more than 20,000 tasks fewer in
/// proportion, but 4, times 1, 2, 4, 8, ... layers; each that
/// keeps the budget is simulated. Offloads start as soon as the block is no longer used forward.
/// TFLMS cannot delay a task until memory is free, so what does not fit in time fails; here a run
/// whose memory counts on an offload waits for it, as a plan must be safe under any timing. The
/// source is silent on algorithms: each task gets the fastest whose workspace fits. Whole blocks;
/// nothing is recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_tflms(const Problem& problem);

}  // namespace spillway::prefetch
