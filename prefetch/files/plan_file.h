#pragma once

#include <cstdint>
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

/// A fingerprint as files have it under "graph", which says for which graph they were made: 16
/// hexadecimal digits.
[[nodiscard]] std::string graph_stamp(std::uint64_t fingerprint);

/// True when `file`, the whole of a plan or a profile, says that it was made for `graph`.
[[nodiscard]] bool is_made_for(const TaskGraph& graph, const JsonView& file);

/// Checks that `file`, the whole of a plan or a profile, was made for `graph`; returns the graph's
/// fingerprint. Throws: um::Error that names the flags which make another graph.
[[nodiscard]] std::uint64_t expect_made_for(const TaskGraph& graph, const JsonView& file);

}  // namespace spillway::prefetch
