#include "src/profile/min_slab.h"

#include <algorithm>

#include "prefetch/block_sizes.h"
#include "prefetch/planner.h"

namespace spillway {
namespace {

// What is movable of what some task needs at the same time, beside the smallest workspace.
um::Bytes max_needed(const prefetch::TaskGraph& graph, um::Bytes page) {
  const prefetch::BlockSizes block_sizes{graph, page};
  return prefetch::near_need(graph, block_sizes).smallest - block_sizes.pinned();
}

}  // namespace

um::Bytes min_slab(const Workload& workload) {
  const um::Bytes page = workload.page();
  um::Bytes max = std::max(page, max_needed(workload.evaluation().graph, page));
  for (const RepeatedStep& part : workload.training_steps()) {
    max = std::max(max, max_needed(part.step.graph, page));
  }
  return max;
}

}  // namespace spillway
