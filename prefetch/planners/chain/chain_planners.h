#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// DYNPROG of Beaumont et al. (section 5.3): the activations that Algorithm 1 chooses for the
/// linearised step (see linearise() and best_chain_offload()), offloaded by the no-wait, ordered
/// schedule (OrderedOffload). Of a virtual layer all saved blocks go or none.
///
/// The chain is a model of the step: where the chosen blocks do not make every run fit, further
/// ones are offloaded, the first in order of production, as greedy does; likewise where Algorithm 1
/// finds nothing. Algorithms: the fastest that fit, or the first ones where memory is short,
/// whichever is shorter. Moves are whole blocks; nothing is recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_dynprog(const Problem& problem);

/// GREEDY of Beaumont et al. (section 4): the no-wait, eager, ordered schedule that offloads the
/// first k activations, whole, where k is the smallest with
///   |x_1| + ... + |x_k| >= M_peak - M_GPU.
///
/// The paper is for chains. On a DAG the activations are the blocks saved for the backward pass, in
/// order of production, and k is raised until every run fits: away is only what the forward pass is
/// done with and the backward pass has not read yet, so at the peak less than the first k may be
/// away. On a chain whose peak lies between the passes this is the paper's k.
///
/// The paper knows no algorithms; here each task gets its fastest where workspace pays, as in
/// choose_algorithms(). Moves are whole blocks; nothing is recomputed.
[[nodiscard]] std::variant<Plan, Infeasible> plan_greedy(const Problem& problem);

/// Optimal checkpointing of the linearised step (see linearise() and RotorTable), without any move.
///
/// At most 100 stages and a memory in 256 units of the step's whole demand: the paper leaves both
/// to the implementation. The table's memory is a model of the step's, so the planner looks for the
/// largest memory of the table whose sequence of runs really fits the budget: by bisection, and if
/// that finds none by trying all. Algorithms are the first ones; each task then gets the fastest
/// whose workspace fits beside what is live at all its runs. A step that fits as it is recomputes
/// nothing, and so does a problem that allows no recomputation.
[[nodiscard]] std::variant<Plan, Infeasible> plan_rotor(const Problem& problem);

}  // namespace spillway::prefetch
