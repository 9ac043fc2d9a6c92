#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

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
class IbmOoc final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "ibm-ooc"; }
  [[nodiscard]] std::string_view description() const override {
    return "swap out after every layer's forward pass, in one layer ahead (IBM's Chainer)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
