#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

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
/// budget, too. At most 64 + 512 + 256 sequences are tried.
///
/// Algorithms are the first ones; each task then gets the fastest whose workspace fits beside what
/// is live at all its runs. A step that fits as it is recomputes nothing, and so does a problem
/// that allows no recomputation.
class Recompute final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "recompute"; }
  [[nodiscard]] std::string_view description() const override {
    return "moves nothing; drops what is cheap to compute again until the rest fits";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
