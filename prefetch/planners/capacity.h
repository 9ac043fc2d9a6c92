#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// The capacity-based strategy of UM-Chainer (section 3.5), page-granular: offload from the front
/// of the network only as much as does not fit, and prefetch in the order of use as early as there
/// is room. On unified memory parts of blocks move, which makes it the optimal fractional greedy of
/// Beaumont et al. (section 4). The paper keeps convolution algorithms fixed; here each task gets
/// the fastest algorithm whose workspace pays. With `may_recompute`, outputs of cheap tasks are
/// dropped and recomputed where that is shorter.
class Capacity final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "capacity"; }
  [[nodiscard]] std::string_view description() const override {
    return "offload what does not fit, prefetch as early as there is room (UM-Chainer 3.5)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
