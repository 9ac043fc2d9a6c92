#pragma once

#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/precedence.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch::testing {

/// Returns every task once, in a random order that keeps the graph's Precedence. `drawn` gives
/// random numbers.
template <typename Drawn>
std::vector<TaskRun> random_order(const TaskGraph& graph, Drawn drawn) {
  const Precedence precedence{graph};
  const std::size_t loads = count_loads(graph);
  std::vector<bool> has_run(graph.tasks.size(), false);
  const auto have_run = [&](std::span<const TaskId> tasks) {
    for (const TaskId task : tasks) {
      if (!has_run[static_cast<std::size_t>(task)]) return false;
    }
    return true;
  };
  std::vector<TaskRun> runs;
  while (runs.size() < graph.tasks.size()) {
    std::vector<TaskId> ready;
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      if (runs.size() < loads && t != runs.size()) continue;
      const bool is_ready = !has_run[t] && have_run(precedence.sources(TaskId(t))) &&
                            have_run(precedence.hazards(TaskId(t)));
      if (is_ready) ready.push_back(TaskId(t));
    }
    const TaskId next = ready[drawn() % ready.size()];
    has_run[static_cast<std::size_t>(next)] = true;
    runs.push_back({.task = next});
  }
  return runs;
}

/// As above, from RapidCheck's numbers.
inline std::vector<TaskRun> random_order(const TaskGraph& graph) {
  return random_order(graph, [] { return *rc::gen::arbitrary<std::uint32_t>(); });
}

}  // namespace spillway::prefetch::testing
