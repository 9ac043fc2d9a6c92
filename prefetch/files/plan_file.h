#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// Returns a plan as JSON, format "spillway-plan" version 1 (prefetch/README.md). Tasks, algorithms
/// and blocks are identified by name.
[[nodiscard]] nlohmann::json to_json(const Plan& plan, const TaskGraph& graph);

/// Reads a plan for `graph`. The result is well formed, but not verified.
/// Throws: um::Error that names the place of the error, or says that the plan was made for another
/// graph.
[[nodiscard]] Plan read_plan(const JsonFile& file, const TaskGraph& graph);

/// Returns the variants that the tasks of `graph` run in as {task: variant}, for tasks with several
/// (Task::variant): the field "variants".
[[nodiscard]] nlohmann::json variants_json(const TaskGraph& graph);

/// Returns the pairs of that field of `plan`, the root of a plan; none if it is not there. Throws:
/// um::Error that names the place of the error.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> read_variants(const JsonView& plan);

/// Returns a fingerprint as 16 hexadecimal digits, as in the field "graph" of files.
[[nodiscard]] std::string graph_stamp(std::uint64_t fingerprint);

/// True when `file`, the root of a plan or a profile, says that it was made for `graph`.
[[nodiscard]] bool is_made_for(const TaskGraph& graph, const JsonView& file);

/// Checks that `file`, the root of a plan or a profile, was made for `graph`; returns the graph's
/// fingerprint. Throws: um::Error that names the flags which change the graph.
[[nodiscard]] std::uint64_t expect_made_for(const TaskGraph& graph, const JsonView& file);

}  // namespace spillway::prefetch
