#include "prefetch/verify/far_runs.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "prefetch/far_update.h"
#include "prefetch/state_home.h"

namespace spillway::prefetch {
namespace {

// By block, what tasks do with it.
struct Touched {
  std::vector<bool> used;
  std::vector<bool> written;
};

Touched touched_by_tasks(const TaskGraph& graph) {
  Touched touched{.used = std::vector<bool>(graph.data.size(), false),
                  .written = std::vector<bool>(graph.data.size(), false)};
  for (const Task& task : graph.tasks) {
    for (const DataId id : task.reads) touched.used[static_cast<std::size_t>(id)] = true;
    for (const auto* const writes : {&task.writes, &task.updates_once}) {
      for (const DataId id : *writes) {
        touched.used[static_cast<std::size_t>(id)] = true;
        touched.written[static_cast<std::size_t>(id)] = true;
      }
    }
  }
  return touched;
}

std::optional<Violation> check_blocks(const TaskGraph& graph, const BlockSizes& block_sizes,
                                      const FarUpdate& update, const StateHome& home,
                                      const Touched& touched) {
  const auto is_far = [&](DataId id) {
    const std::vector<bool>& pages = home.far_pages(id);
    return !pages.empty() && std::ranges::all_of(pages, [](bool far) { return far; });
  };
  if (touched.written[static_cast<std::size_t>(update.parameters)]) {
    return Violation{graph[update.parameters].name + " is written near and by " + update.name};
  }
  for (const DataId id : {update.gradient, update.parameters}) {
    if (!is_far(id)) {
      return Violation{graph[id].name + " is not far when " + update.name + " is to use it there"};
    }
  }
  for (const DataId id : update.numbers) {
    if (!block_sizes.is_movable(id)) {
      return Violation{graph[id].name + " is too small a block to be far for " + update.name};
    }
    if (touched.used[static_cast<std::size_t>(id)]) {
      return Violation{graph[id].name + " is used near and by " + update.name};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> check_far_runs(const TaskGraph& graph, const BlockSizes& block_sizes,
                                        const Plan& plan) {
  std::vector<bool> has_run(graph.far_updates.size(), false);
  for (const FarRun& run : plan.far_runs) {
    if (run.update >= has_run.size())
      return Violation{"a far run names an update that is not there"};
    if (has_run[run.update]) return Violation{graph.far_updates[run.update].name + " runs twice"};
    has_run[run.update] = true;
  }
  for (std::size_t u = 0; u < has_run.size(); ++u) {
    if (!has_run[u]) return Violation{graph.far_updates[u].name + " never runs"};
  }
  if (plan.far_runs.empty()) return std::nullopt;
  const StateHome home{graph, block_sizes, plan};
  const Touched touched = touched_by_tasks(graph);
  const std::vector<Progress> conditions = far_run_conditions(graph, plan);
  const Progress all{.runs = static_cast<std::uint32_t>(plan.runs.size()),
                     .offloads = static_cast<std::uint32_t>(plan.offloads.size()),
                     .prefetches = static_cast<std::uint32_t>(plan.prefetches.size())};
  for (const FarRun& run : plan.far_runs) {
    const FarUpdate& update = graph.far_updates[run.update];
    if (auto violation = check_blocks(graph, block_sizes, update, home, touched)) {
      return violation;
    }
    if (!run.after.reaches(conditions[run.update])) {
      return Violation{update.name + " does not wait for what it uses to be far"};
    }
    if (!all.reaches(run.after)) return Violation{update.name + " waits for ever"};
  }
  return std::nullopt;
}

}  // namespace spillway::prefetch
