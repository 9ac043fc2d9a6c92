#pragma once

#include "prefetch/planner.h"

namespace spillway::prefetch {

/// The default: page-granular offloading, recomputation (once or for each use) and convolution
/// algorithms chosen together by joint_search(). Spillway's own; facts on planning, section 3.
class Joint final : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "joint"; }
  [[nodiscard]] std::string_view description() const override {
    return "moves parts of blocks, runs tasks again and picks algorithms, all chosen together "
           "(Spillway's own)";
  }
  [[nodiscard]] std::variant<Plan, Infeasible> plan(const Problem& problem) const override;
};

}  // namespace spillway::prefetch
