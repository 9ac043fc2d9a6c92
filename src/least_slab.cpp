#include "src/least_slab.h"

#include <algorithm>

#include "prefetch/need.h"
#include "prefetch/occupancy.h"

namespace spillway {
namespace {

// What lives at the same time, of what is movable, beside the smallest workspaces.
um::Bytes most_alive(const prefetch::TaskGraph& graph, um::Bytes page) {
  const prefetch::Occupancy occupancy{graph, page};
  return prefetch::near_need(graph, occupancy).resident - occupancy.always_near();
}

}  // namespace

um::Bytes least_slab(const Workload& workload) {
  const um::Bytes page = workload.page();
  um::Bytes most = std::max(page, most_alive(workload.evaluation().graph, page));
  for (const RepeatedStep& part : workload.training_steps()) {
    most = std::max(most, most_alive(part.step.graph, page));
  }
  return most;
}

}  // namespace spillway
