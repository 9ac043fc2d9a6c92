#include "prefetch/stays.h"

#include <algorithm>
#include <utility>

#include "prefetch/liveness.h"
#include "prefetch/occupancy.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

// The moves of one block that are not yet part of a stay.
struct Trips {
  std::vector<std::uint32_t> offloads;
  std::vector<std::uint32_t> prefetches;
  std::size_t next = 0;
};

std::vector<Trips> trips_by_block(const TaskGraph& graph, const Plan& plan) {
  std::vector<Trips> trips(graph.data.size());
  for (std::uint32_t i = 0; i < plan.offloads.size(); ++i) {
    trips[static_cast<std::size_t>(plan.offloads[i].data)].offloads.push_back(i);
  }
  for (std::uint32_t i = 0; i < plan.prefetches.size(); ++i) {
    trips[static_cast<std::size_t>(plan.prefetches[i].data)].prefetches.push_back(i);
  }
  return trips;
}

// Cuts a life where the block is away: a whole block that leaves comes back before its next use.
void add_stays(const Life& life, um::Bytes size, const Plan& plan, Trips& trips,
               std::vector<Stay>& stays) {
  Stay stay{.data = life.data, .size = um::round_up(size, kSmallestPage), .first = life.begin()};
  for (; trips.next < trips.offloads.size(); ++trips.next) {
    const std::uint32_t offload = trips.offloads[trips.next];
    if (plan.offloads[offload].frees_after() > life.last()) break;
    stay.is_offloaded = true;
    stay.last = offload;
    stays.push_back(stay);
    stay.is_prefetched = true;
    stay.first = trips.prefetches.at(trips.next);
    stay.is_offloaded = false;
  }
  stay.last = life.last();
  stays.push_back(stay);
}

}  // namespace

std::vector<Stay> find_stays(const TaskGraph& graph, const Plan& plan) {
  um::expects(plan.residency == Residency::kPlanned && moves_whole_blocks(plan, graph),
              "stays are of whole blocks that a plan moves");
  const Occupancy occupancy{graph, plan.page};
  std::vector<Trips> trips = trips_by_block(graph, plan);
  std::vector<Stay> stays;
  for (const Life& life : find_lives(graph, plan.runs)) {
    if (!occupancy.is_movable(life.data)) continue;
    um::expects(!life.outlives_step(), "state that leaves near memory can be planned, not run");
    add_stays(life, graph[life.data].size, plan, trips[static_cast<std::size_t>(life.data)], stays);
  }
  for (Position p = 0; p < plan.runs.size(); ++p) {
    const TaskRun& run = plan.runs[p];
    const um::Bytes workspace = graph[run.task].algorithms[run.algorithm].workspace;
    if (occupancy.workspace_size(workspace) == um::Bytes{}) continue;
    stays.push_back({.is_workspace = true,
                     .size = um::round_up(workspace, kSmallestPage),
                     .first = p,
                     .last = p});
  }
  std::ranges::stable_sort(stays, {}, [](const Stay& stay) {
    return std::pair{stay.is_prefetched, stay.first};
  });
  return stays;
}

}  // namespace spillway::prefetch
