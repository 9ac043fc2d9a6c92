#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "prefetch/files/json.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// A plan as JSON, format "spillway-plan" version 1 (prefetch/README.md). Tasks, algorithms and
/// blocks go by name.
[[nodiscard]] nlohmann::json to_json(const Plan& plan, const TaskGraph& graph);

/// Reads a plan for `graph`. The result is well formed, but not verified.
/// Throws: um::Error that names the place of what is wrong, or says that the plan was made for
/// another graph.
[[nodiscard]] Plan read_plan(const JsonFile& file, const TaskGraph& graph);

}  // namespace spillway::prefetch
