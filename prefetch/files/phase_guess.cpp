#include "prefetch/files/phase_guess.h"

#include <algorithm>
#include <cstddef>

#include "um/bytes.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Bytes of the tensors that live on after each task: touched up to it, and again later.
std::vector<Bytes> live_after(const TaskGraph& graph) {
  constexpr std::size_t kNever = ~std::size_t{0};
  std::vector<std::size_t> first(graph.data.size(), kNever);
  std::vector<std::size_t> last(graph.data.size(), kNever);
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    for (const auto* ids : {&graph.tasks[t].reads, &graph.tasks[t].writes}) {
      for (const DataId id : *ids) {
        const auto data = static_cast<std::size_t>(id);
        if (first[data] == kNever) first[data] = t;
        last[data] = t;
      }
    }
  }
  std::vector<Bytes> begins(graph.tasks.size());
  std::vector<Bytes> ends(graph.tasks.size());
  for (std::size_t data = 0; data < graph.data.size(); ++data) {
    if (graph.data[data].kind == DataKind::kState || first[data] == kNever) continue;
    begins[first[data]] += graph.data[data].size;
    ends[last[data]] += graph.data[data].size;
  }
  std::vector<Bytes> live;
  Bytes now;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    live.push_back(now = now + begins[t] - ends[t]);
  }
  return live;
}

bool writes_state(const TaskGraph& graph, const Task& task) {
  return std::ranges::any_of(task.writes,
                             [&](DataId id) { return graph[id].kind == DataKind::kState; });
}

}  // namespace

std::vector<Phase> guess_phases(const TaskGraph& graph) {
  std::vector<Phase> phases(graph.tasks.size(), Phase::kForward);
  const std::vector<Bytes> live = live_after(graph);
  const auto max = std::ranges::max_element(live);
  if (max == live.end() || *max == Bytes{}) return phases;
  for (auto t = static_cast<std::size_t>(max - live.begin()) + 1; t < phases.size(); ++t) {
    phases[t] = writes_state(graph, graph.tasks[t]) ? Phase::kUpdate : Phase::kBackward;
  }
  return phases;
}

}  // namespace spillway::prefetch
