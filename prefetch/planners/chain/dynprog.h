#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "prefetch/planner.h"
#include "prefetch/planners/chain/chain.h"
#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The offloaded activations of a chain, and their cost in the relaxed model.
struct ChainOffload {
  std::vector<bool> offloaded;  ///< by i: x_i, 0 <= i <= L; x_0 first
  double idle_seconds = 0;      ///< of the compute queue
};

/// The precision of best_chain_offload().
struct ChainOffloadOptions {
  std::size_t entries = 2048;     ///< most states per stage
  std::size_t grid_cells = 1024;  ///< the finest grid: near memory / grid_cells
};

/// Algorithm 1 of Beaumont et al. (section 5.3): chooses the activations to offload, each wholly or
/// not, with the least idle time of the no-wait, ordered schedule with interruptible
/// communications. The recurrences are Eqs. 1-8, the idle time between the passes Eq. 9.
///
/// x_i is everything that stage i - 1 saves, x_0 is Chain::input; x_{L+1} is never offloaded. Each
/// direction has its own bandwidth; latency is ignored, as in the paper. If the paper's indices
/// contradict its section 3.1, that section holds: B_i reads y_{i+1} and writes y_i, and needs
/// ex^B_i (Eq. 6 has ex^F_i, R^B_j has y_{j-1}). Memory in the condition of Algorithm 1 is without
/// max(0, Delta), as in section 5.2.
///
/// Rounding is left by the paper to its research report. Here memory, Delta_F and Delta_B are
/// exact. Among the states of one stage in one cell of a grid, the one with the least idle time is
/// kept (among equals the one that moves least). The grid starts at near memory / `grid_cells` and
/// doubles, stage by stage, until at most `entries` states are left: the number of steps is fixed.
/// Av, the time since the last transfer, is limited to what memory can hold, which does not change
/// Eq. 9.
///
/// Returns nullopt when no state is left: no kept set of activations makes every stage fit in
/// `memory`.
/// Complexity: O(stages * entries * log entries).
[[nodiscard]] std::optional<ChainOffload> best_chain_offload(
    const Chain& chain, um::Bytes memory, const LinkProfile& link,
    const ChainOffloadOptions& options = {});

/// DYNPROG of Beaumont et al. (section 5.3): offloads the activations that Algorithm 1 chooses for
/// the linearised step (see linearise() and best_chain_offload()), by the no-wait, ordered schedule
/// (OrderedOffload). All saved blocks of a virtual layer are offloaded, or none.
///
/// The chain is a model of the step. If the chosen blocks do not make every run fit, or Algorithm 1
/// finds nothing, further blocks are offloaded in order of production, as by greedy. Algorithms:
/// the fastest that fit, or the first ones if memory is short, whichever is shorter. Moves are
/// whole blocks; nothing is recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_dynprog(const Problem& problem);

/// GREEDY of Beaumont et al. (section 4): the no-wait, eager, ordered schedule that offloads the
/// first k activations, whole, where k is the smallest with
///   |x_1| + ... + |x_k| >= M_peak - M_GPU.
///
/// The paper is for chains. On a DAG the activations are the blocks saved for the backward pass, in
/// order of production, and k is raised until every run fits. Blocks are away only between their
/// last forward and their first backward use, so at the peak fewer than the first k may be away. On
/// a chain with its peak between the passes, k is the paper's.
///
/// The paper does not consider algorithms; here each task gets its fastest if its workspace pays,
/// as in choose_algorithms(). Moves are whole blocks; nothing is recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_greedy(const Problem& problem);

}  // namespace spillway::prefetch
