#pragma once

#include <string>

#include "src/plan/plans.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"

namespace spillway {

/// Whether a file of a plan or profile is of the training step of one of the workloads of
/// `choice`. Throws: um::Error when it cannot be read.
[[nodiscard]] bool is_file_of(const StateChoice& choice, const std::string& file);

/// A plan that a file holds, and what it is a plan of.
struct FilePlan {
  const Workload* workload = nullptr;  ///< one of the choice's
  PlanOfFile plan;                     ///< of its training step
};

/// The plan to use instead of a planner's. In resident mode, where there is no far side, one with
/// updates on it becomes near_plan(). Throws: um::Error when it cannot be read, is of another step,
/// or of state or updates on another side than `request` asks for.
[[nodiscard]] FilePlan read_file_plan(const StateChoice& choice, const PlanRequest& request,
                                      const std::string& path);

}  // namespace spillway
