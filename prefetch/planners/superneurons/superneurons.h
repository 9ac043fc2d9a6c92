#pragma once

#include <string>
#include <string_view>

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// The parts of SuperNeurons that can be switched off. Its liveness analysis (section 3.2) cannot:
/// every plan frees a tensor after its last use.
struct SuperNeuronsOptions {
  bool offload = true;       ///< unified tensor pool: outputs of convolutions move (section 3.3)
  bool tensor_cache = true;  ///< these move only when memory is short (section 3.3.2)
  bool recompute = true;     ///< cost-aware recomputation (section 3.4)
  bool workspace = true;     ///< fast convolutions in left-over memory (section 3.5)
};

/// Reads "no-offload", "no-cache", "no-recompute", "no-workspace", separated by commas.
/// Throws: um::Error that lists them.
[[nodiscard]] SuperNeuronsOptions parse_superneurons_switches(std::string_view text);

/// SuperNeurons (Wang et al., PPoPP 2018): liveness analysis, Unified Tensor Pool with an LRU
/// tensor cache, cost-aware recomputation, and convolution workspaces from left-over memory.
///
/// - Recomputation does not depend on the budget: drop_cheap_layers() drops and recomputes the
///   outputs of all cheap layers. The paper names no condition, and its step-wise figures apply it
///   to a network that fits. `Problem::may_recompute` switches it off, too.
/// - TensorPool then decides what moves and when: only whole outputs of convolutions (section
///   3.3.1), so outputs of joins and linear layers stay although they are checkpoints of the
///   recomputation.
/// - Finally, each task gets its fastest algorithm with a workspace that fits in the free memory at
///   all its runs. The paper speaks of convolutions; here it is every task with a choice.
///
/// Below TensorPool::floor() these rules have no plan; other strategies may have one. The paper's
/// heap and its fragmentation are not modelled.
[[nodiscard]] std::variant<Plan, Infeasible> plan_superneurons(
    const Problem& problem, const SuperNeuronsOptions& options = {});

/// Returns "superneurons", and after a colon the switches: "superneurons:no-cache,no-recompute".
[[nodiscard]] std::string superneurons_name(const SuperNeuronsOptions& options);

}  // namespace spillway::prefetch
