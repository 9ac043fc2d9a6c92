#include "prefetch/moves/activations.h"

#include <algorithm>

namespace spillway::prefetch {

Position forward_end(const TaskGraph& graph) {
  const auto end = std::ranges::find_if(
      graph.tasks, [](const Task& task) { return task.phase != Phase::kForward; });
  return static_cast<Position>(end - graph.tasks.begin());
}

std::vector<Activation> find_activations(const TaskGraph& graph, const BlockSizes& block_sizes,
                                         std::span<const Life> lives) {
  const Position end = forward_end(graph);
  std::vector<Activation> saved;
  for (const Life& life : lives) {
    if (!block_sizes.is_movable(life.data) || life.begin() >= end || life.last() < end) continue;
    Activation block{.data = life.data, .produced = life.begin(), .written = life.begin()};
    for (const BlockAccess& access : life.accesses) {
      block.next = access.position;
      if (access.position >= end) break;
      block.last = access.position;
      if (access.writes) block.written = access.position;
    }
    saved.push_back(block);
  }
  return saved;  // lives are in order of their beginning
}

}  // namespace spillway::prefetch
