#include "src/least_slab.h"

#include <algorithm>

#include "prefetch/need.h"
#include "prefetch/occupancy.h"

namespace spillway {
namespace {

// What is movable of what some task needs at the same time, beside the smallest workspace.
um::Bytes most_needed(const prefetch::TaskGraph& graph, um::Bytes page) {
  const prefetch::Occupancy occupancy{graph, page};
  return prefetch::near_need(graph, occupancy).smallest - occupancy.always_near();
}

}  // namespace

um::Bytes least_slab(const Workload& workload) {
  const um::Bytes page = workload.page();
  um::Bytes most = std::max(page, most_needed(workload.evaluation().graph, page));
  for (const RepeatedStep& part : workload.training_steps()) {
    most = std::max(most, most_needed(part.step.graph, page));
  }
  return most;
}

}  // namespace spillway
