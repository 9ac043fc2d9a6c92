#pragma once

#include <string>
#include <vector>

#include "src/step/step.h"

namespace spillway::gpu {

/// The convolutions of a step, each once: those with the same pass, geometry and ReLU take the same
/// time.
struct DistinctConvolutions {
  /// Of the step's tasks and launches the first of each kind; its blocks are all there, so that
  /// measure_tasks() takes it. It is no step that could be planned.
  Step step;
  /// By TaskId of `step`: the names of all tasks that are the same, in the step's order.
  std::vector<std::vector<std::string>> tasks;
};

/// Those of `whole`, transposed ones among them. Complexity: tasks times kinds.
[[nodiscard]] DistinctConvolutions distinct_convolutions(const Step& whole);

}  // namespace spillway::gpu
