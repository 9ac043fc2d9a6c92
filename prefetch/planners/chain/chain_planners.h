#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

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

/// Optimal checkpointing of the linearised step (see linearise() and RotorTable), without moves.
///
/// At most 100 stages, and memory in 256 units of the step's whole demand: the paper leaves both to
/// the implementation. The table's memory models the step's. The planner searches the largest table
/// memory with a sequence of runs that really fits the budget: by bisection, or if that fails by
/// trying all. Algorithms are the first ones; then each task gets the fastest with a workspace that
/// fits beside the live blocks at all its runs. Nothing is recomputed if the step fits, or the
/// problem forbids it.
[[nodiscard]] std::variant<Plan, Infeasible> plan_rotor(const Problem& problem);

}  // namespace spillway::prefetch
