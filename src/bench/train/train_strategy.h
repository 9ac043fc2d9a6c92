#pragma once

#include <string>
#include <string_view>

#include "prefetch/planner.h"
#include "src/plan/plans.h"

namespace spillway {

/// A way to train that a bench compares with others: where tensors live, and who plans.
struct TrainStrategy {
  std::string name;  ///< "resident", "on-demand", "copy"
  MemoryMode memory = MemoryMode::kManaged;
  const prefetch::Planner* planner = nullptr;  ///< none where all stays resident, or a file plans
  std::string plan_file;                       ///< of the training step's plan; empty: none

  [[nodiscard]] bool is_resident() const { return memory == MemoryMode::kResident; }
  /// Where a file has the plan of training, `joint` makes the one of evaluation.
  [[nodiscard]] PlanRequest request() const;
  friend bool operator==(const TrainStrategy&, const TrainStrategy&) = default;
};

/// All in near memory: what the others are compared with.
[[nodiscard]] TrainStrategy resident_strategy();

/// A planner's by its name, over `memory`. Throws: um::Error that lists the planners there are.
[[nodiscard]] TrainStrategy planner_strategy(std::string_view name,
                                             MemoryMode memory = MemoryMode::kManaged);

/// The plan of a file, as spillway plan --out writes it, over unified memory; with explicit copies
/// where `text` is "copy:" and the file. Its name is the file's, without folders.
/// Throws: um::Error when there is no such file.
[[nodiscard]] TrainStrategy plan_file_strategy(std::string_view text);

/// "resident"; "copy": the joint planner's plan executed with explicit copies; any other name is
/// that of a planner over unified memory. Throws: um::Error.
[[nodiscard]] TrainStrategy find_train_strategy(std::string_view name);

}  // namespace spillway
