#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

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

}  // namespace spillway::prefetch
