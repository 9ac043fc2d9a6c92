#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <variant>

#include "prefetch/planner.h"
#include "prefetch/planners/chain/dynprog.h"
#include "prefetch/planners/chain/rotor.h"
#include "prefetch/planners/joint/joint_search.h"
#include "prefetch/planners/modnn/modnn.h"
#include "prefetch/planners/superneurons.h"

namespace spillway::prefetch {

/// AutoSwap (Zhang et al. 2019), as described by Beaumont et al. (section 6): a weighted sum of
/// four priority scores decides which blocks are swapped, one by one until the budget is kept. Load
/// is the near memory in use when nothing moves, or with the chosen blocks swapped. A block's
/// scores are:
/// - DOA, duration of absence: the time between its last use before and its first use after;
/// - AOA, area of absence: DOA less its two transfers, times its size (divided, where negative);
/// - WDOA, weighted duration of absence: the integral of load - budget over its absence;
/// - SWDOA, submodular WDOA: WDOA with the load after the choices so far.
/// Each is divided by the largest magnitude among the blocks, which the sources leave open. A block
/// is considered only if its absence helps while the budget is still exceeded.
///
/// The paper finds the weights by Bayesian optimisation; here by a seeded random search with 32
/// simulated plans: the four corners, the centre, then alternately draws from the whole simplex and
/// from around the best. As in Beaumont's comparison only the choice of blocks is AutoSwap's;
/// prefetches start as early as there is room, in order of use. Algorithms: each task gets the
/// fastest with a workspace that fits when everything is away. Whole blocks; nothing is recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_autoswap(const Problem& problem);

/// The capacity-based strategy of UM-Chainer (Zhang et al., section 3.5). Whole blocks leave, least
/// recently used first, only until the rest fits in near memory. They return as early as there is
/// room, regardless of the running task. Each task has its fastest algorithm that fits when all
/// else is far, or its first if pinned state leaves no room for workspaces. Recomputes nothing
/// (section 3.1).
///
/// The paper speaks of layers of a chain; here a block may leave in any gap between two uses.
[[nodiscard]] std::variant<Plan, Infeasible> plan_capacity(const Problem& problem);

/// Moves parts of blocks, and only as much as necessary: at each task missing bytes are taken from
/// the least recently used blocks (Beaumont et al., section 4, Theorem 2: on a chain no plan that
/// only moves is shorter). Each part returns as early as memory allows. Fast algorithms are
/// reverted if their workspace costs more in moves than it saves. Recomputes nothing. If moves must
/// take whole blocks, this is the capacity-based strategy.
[[nodiscard]] std::variant<Plan, Infeasible> plan_fractional(const Problem& problem);

/// The out-of-core mode of IBM's Chainer as described by UM-Chainer (sections 2.1, 3.4, 3.5 and
/// 4.2: "vDNN-like"). Under any budget, every layer (also the last) swaps out its saved blocks at
/// the end of its forward pass, and the end of the next layer waits for that. While a layer's
/// backward pass runs, the blocks of the previous layer are swapped in, and that layer waits for
/// them (Eq. 7: T = max(T_proc(l), T_swap(l-1))). The first layer of the backward pass waits for
/// its own data to be swapped out and in (Figure 3).
///
/// A saved block leaves after its last forward use. If its room is needed at once, the next layer
/// waits for its offload from the beginning; the paper does not specify this case. It does not
/// specify algorithms either: each task gets the fastest with a workspace that fits. Whole blocks;
/// nothing is recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_ibm_ooc(const Problem& problem);

/// Offloads every block that the backward pass reads again, then reverts offloads block by block,
/// the largest first: each stays near if it fits beside the blocks that are near already. Not
/// published under this name: a plain baseline for strategies that choose blocks.
///
/// Algorithms come first: each task gets the fastest with a workspace that fits when everything is
/// away. Blocks of one size are taken in the order in which they leave. The remaining moves are as
/// in the capacity-based strategy: prefetches as early as there is room. Whole blocks; nothing is
/// recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_largest_first(const Problem& problem);

/// No look-ahead. With unified memory: no hints; pages move by faults and evictions. Such a page is
/// Plan::page, which choose_page() makes smaller than 2 MiB if tensors are small. With whole
/// blocks, for explicit swapping: a block is fetched when a task needs it, the least recently used
/// blocks leave when room is needed, and the task waits for both.
[[nodiscard]] std::variant<Plan, Infeasible> plan_on_demand(const Problem& problem);

/// Recomputation alone, on any graph: outputs of cheap forward tasks are dropped and recomputed in
/// the backward pass; nothing is moved. Searches a set of droppable blocks (find_recomputable(),
/// cheapest per byte first) with which every run fits:
/// 1. prefixes of the list, on a grid of 32, recomputed once, or otherwise for each use; the
///    fastest fit;
/// 2. if none fits, continues from the one that needs least, block by block: a block that is live
///    at the peak is dropped, or recomputed for each use if it was dropped already, while the need
///    decreases;
/// 3. blocks that need not be dropped are kept, or recomputed once instead of for each use, the
///    most expensive first, while that shortens the step.
/// Steps 1 and 2 depend on the budget only for stopping, so a fit remains one in every larger
/// budget. At most 64 + 512 + 256 sequences are tried. Each has at most 2^17 runs, or 8 times the
/// tasks of the step; all have at most 3 * 2^22 runs together, which is some 125 sequences for
/// 10^5 tasks.
///
/// Algorithms are the first ones; then each task gets the fastest with a workspace that fits beside
/// the live blocks at all its runs. Nothing is recomputed if the step fits, or the problem forbids
/// it.
[[nodiscard]] std::variant<Plan, Infeasible> plan_recompute(const Problem& problem);

/// Moves nothing: everything stays near. Feasible only when the whole step fits.
[[nodiscard]] std::variant<Plan, Infeasible> plan_resident(const Problem& problem);

/// TFLMS (Le et al. 2018), as implemented by Beaumont et al. (section 6). It has two parameters,
/// and the best configuration is taken. One is the number of saved tensors to offload, counted from
/// the beginning of the network (its option n_tensors). The other is the number of layers by which
/// they are prefetched in advance (lb). Profiles only serve to compare configurations: within one,
/// moves depend on the graph alone, and all chosen tensors move, even if memory suffices.
///
/// Configurations: 0 to all tensors in at most 32 steps (proportionally fewer beyond 20,000 tasks,
/// but at least 4), times 1, 2, 4, 8, ... layers; each that keeps the budget is simulated. Offloads
/// start after the last forward use. TFLMS cannot delay a task until memory is free, so it fails if
/// blocks do not fit in time; here a run that counts on an offload's room waits for it, as a plan
/// must be safe under any timing. The source does not specify algorithms: each task gets the
/// fastest with a workspace that fits. Whole blocks; nothing is recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_tflms(const Problem& problem);

/// vDNN's static policy vDNN_all (Rhu et al., MICRO 2016, section III.C): offloads the input of
/// every layer; see vdnn.cpp for the rules. The paper evaluates it with performance-optimal and
/// with memory-optimal algorithms for the whole network; here the former are taken if they keep the
/// budget, otherwise the latter.
[[nodiscard]] std::variant<Plan, Infeasible> plan_vdnn_all(const Problem& problem);

/// vDNN's static policy vDNN_conv (Rhu et al., MICRO 2016, section III.C): offloads only the inputs
/// of convolutions, which are long enough to hide that; see vdnn.cpp for the rules. Moves nothing
/// in a graph that does not mark convolutions. Algorithms as in vdnn-all.
[[nodiscard]] std::variant<Plan, Infeasible> plan_vdnn_conv(const Problem& problem);

/// vDNN's dynamic policy (Rhu et al., MICRO 2016, section III.C): takes the first trial step that
/// keeps the budget:
/// 1. nothing offloaded, performance-optimal algorithms;
/// 2. vdnn-conv, then vdnn-all, performance-optimal;
/// 3. vdnn-conv, then vdnn-all, algorithms downgraded greedily where they do not fit.
/// The paper's very first trial, vdnn-all with memory-optimal algorithms, decides whether the
/// network can be trained at all; here it is the answer when all others fail. A trial queries the
/// liveness analysis instead of measuring a step.
[[nodiscard]] std::variant<Plan, Infeasible> plan_vdnn_dyn(const Problem& problem);

/// plan_joint() beside all strategies of the table that may be asked.
[[nodiscard]] std::variant<Plan, Infeasible> plan_joint_beside_all(const Problem& problem);

/// Abilities and limits of a strategy.
struct StrategyTraits {
  MicroBatchRule rule = MicroBatchRule::kSearch;
  bool moves_state = false;
  bool updates_far = false;
  bool chooses_variants = false;
  /// Limit for work that grows at least with the square.
  std::size_t max_tasks = std::numeric_limits<std::size_t>::max();
};

/// A planner of the catalogue.
struct StrategyRow {
  const char* name;
  const char* description;    ///< for help
  StartingStrategy strategy;  ///< `joint` asks it for steps of at most its tasks
  StrategyTraits traits{};
};

/// The largest steps, in tasks, for which joint also asks a strategy: below them it takes a
/// fraction of joint's own time. Strategies that try many plans take longest.
inline constexpr std::size_t kTriesMany = 1000;
inline constexpr std::size_t kFollowsARule = 10000;

/// AutoSwap scores all blocks again after each choice. moDNN scans all of near memory before each
/// task, once per task of look-ahead.
inline constexpr std::size_t kMaxAutoswapTasks = 15'000;
inline constexpr std::size_t kMaxModnnTasks = 5'000;

inline constexpr const char* kSuperNeuronsParts =
    "offloads convolutions' outputs, recomputes cheap layers (SuperNeurons); "
    "superneurons:no-offload,no-cache,no-recompute,no-workspace switches parts off";

/// All planners, in the order of help texts.
inline constexpr std::array kStrategies{
    StrategyRow{
        "autoswap",
        "swaps the blocks with the best weighted score; searches for the weights (AutoSwap)",
        {.plan = plan_autoswap, .max_tasks = kTriesMany},
        {.max_tasks = kMaxAutoswapTasks}},
    StrategyRow{"capacity",
                "offloads whole blocks until the rest fits; prefetches as early as there is room "
                "(UM-Chainer)",
                {.plan = plan_capacity, .max_tasks = kFollowsARule},
                {.moves_state = true, .updates_far = true}},
    StrategyRow{
        "dynprog",
        "offloads the activations that a dynamic program chooses (Beaumont et al., section 5)",
        {.plan = plan_dynprog, .max_tasks = kTriesMany}},
    StrategyRow{"fractional",
                "offloads only the parts of blocks that do not fit, the longest unused first "
                "(Beaumont et al., section 4)",
                {.plan = plan_fractional, .max_tasks = kTriesMany},
                {.moves_state = true, .updates_far = true}},
    StrategyRow{
        "greedy",
        "offloads the first activations, as many as do not fit (Beaumont et al., section 4)",
        {.plan = plan_greedy, .max_tasks = kFollowsARule}},
    StrategyRow{
        "ibm-ooc",
        "offloads after every layer's forward pass, prefetches one layer ahead (IBM's Chainer)",
        {.plan = plan_ibm_ooc, .max_tasks = kFollowsARule}},
    StrategyRow{"joint",
                "offloads parts of blocks, recomputes, and picks convolution algorithms, all "
                "chosen together (Spillway's own)",
                {.plan = plan_joint_beside_all},
                {.moves_state = true, .updates_far = true, .chooses_variants = true}},
    StrategyRow{"largest-first",
                "offloads all activations, then keeps the largest blocks that fit",
                {.plan = plan_largest_first, .max_tasks = kFollowsARule}},
    StrategyRow{"modnn",
                "executes the step in estimated time: offloads what delays least, prefetches "
                "just in time (moDNN, Algorithm 1)",
                {.plan = plan_modnn, .max_tasks = kTriesMany},
                {.rule = MicroBatchRule::kWorkingSet, .max_tasks = kMaxModnnTasks}},
    StrategyRow{"on-demand",
                "no foresight: page faults alone (managed), or least-recently-used swapping when a "
                "task needs a block (copy)",
                {.plan = plan_on_demand},
                {.moves_state = true}},
    StrategyRow{"recompute",
                "moves nothing; drops activations that are cheap to recompute until the rest fits",
                {.plan = plan_recompute, .recomputes = true, .max_tasks = kTriesMany}},
    StrategyRow{"resident",
                "moves nothing; needs a budget that holds the whole step",
                {.plan = plan_resident, .max_tasks = kFollowsARule}},
    StrategyRow{"rotor",
                "moves nothing; recomputes, optimally for a chain (rotor, RR-9302)",
                {.plan = plan_rotor, .recomputes = true, .max_tasks = kTriesMany}},
    StrategyRow{"superneurons",
                kSuperNeuronsParts,
                {.plan = [](const Problem& problem) { return plan_superneurons(problem); },
                 .recomputes = true,
                 .max_tasks = kFollowsARule}},
    StrategyRow{
        "tflms",
        "offloads the first n activations, prefetches d layers ahead; tries n and d (TFLMS)",
        {.plan = plan_tflms, .max_tasks = kTriesMany}},
    StrategyRow{"vdnn-all",
                "offloads the input of every layer, layer by layer (vDNN)",
                {.plan = plan_vdnn_all, .max_tasks = kFollowsARule}},
    StrategyRow{"vdnn-conv",
                "offloads the inputs of convolutions, layer by layer (vDNN)",
                {.plan = plan_vdnn_conv, .max_tasks = kFollowsARule}},
    StrategyRow{
        "vdnn-dyn",
        "offloads nothing, convolutions' inputs or all inputs, as the budget demands (vDNN)",
        {.plan = plan_vdnn_dyn, .max_tasks = kFollowsARule}},
    // moDNN section V-B does not say which of vDNN's policies it extends: here the dynamic one.
    StrategyRow{
        "vdnn+",
        "vdnn-dyn in micro-batches by working set (moDNN, section V-B); see --micro-batch-size",
        {.plan = plan_vdnn_dyn, .max_tasks = kFollowsARule},
        {.rule = MicroBatchRule::kWorkingSet}},
};

}  // namespace spillway::prefetch
