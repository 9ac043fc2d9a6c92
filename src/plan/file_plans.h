#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "src/plan/plans.h"
#include "src/plan/state_choice.h"
#include "src/plan/workload.h"

namespace spillway {

/// The file of the plan of a training step, by its number.
using PlanPath = std::function<std::string(std::size_t step)>;

/// Whether a file of a plan or profile is of the training steps of one of the workloads of
/// `choice`. Throws: um::Error when it cannot be read.
[[nodiscard]] bool is_file_of(const StateChoice& choice, const std::string& file);

/// Plans that files hold, and what they are plans of.
struct FilePlans {
  const Workload* workload = nullptr;  ///< one of the choice's
  std::vector<PlanOfFile> plans;       ///< of its training steps
};

/// The plans to use instead of a planner's. In resident mode, where there is no far side, those
/// with updates on it become near_plan(). Throws: um::Error when one cannot be read, is of other
/// steps, or of state or updates on another side than `request` asks for.
[[nodiscard]] FilePlans read_file_plans(const StateChoice& choice, const PlanRequest& request,
                                        const PlanPath& path);

}  // namespace spillway
