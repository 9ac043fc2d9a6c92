#pragma once

#include <string>
#include <string_view>

#include "prefetch/planner.h"
#include "src/plan/memory_mode.h"
#include "src/plan/plans.h"

namespace spillway {

/// A way to train that a bench compares with others: where tensors live, and who plans.
struct TrainStrategy {
  std::string name;  ///< "resident", "on-demand", "copy"
  MemoryMode memory = MemoryMode::kManaged;
  const prefetch::Planner* planner = nullptr;  ///< none where all stays resident

  [[nodiscard]] bool is_resident() const { return memory == MemoryMode::kResident; }
  [[nodiscard]] PlanRequest request() const { return {.memory = memory, .planner = planner}; }
  friend bool operator==(const TrainStrategy&, const TrainStrategy&) = default;
};

/// All in near memory: what the others are compared with.
[[nodiscard]] TrainStrategy resident_strategy();

/// A planner's by its name, over `memory`. Throws: um::Error that lists the planners there are.
[[nodiscard]] TrainStrategy planner_strategy(std::string_view name,
                                             MemoryMode memory = MemoryMode::kManaged);

/// "resident"; "copy": the joint planner's plan executed with explicit copies; any other name is
/// that of a planner over unified memory. Throws: um::Error.
[[nodiscard]] TrainStrategy find_train_strategy(std::string_view name);

}  // namespace spillway
