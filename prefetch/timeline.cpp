#include "prefetch/timeline.h"

#include <algorithm>
#include <cstdint>

#include "prefetch/liveness.h"
#include "prefetch/occupancy.h"
#include "prefetch/state_home.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

// At `time` the near memory in use grows by `change` bytes.
struct Change {
  um::Nanoseconds time;
  std::int64_t bytes;
};

std::int64_t signed_count(um::Bytes size) { return static_cast<std::int64_t>(size.count()); }

}  // namespace

std::vector<MemorySample> memory_curve(const TaskGraph& graph, const Plan& plan,
                                       const Timeline& timeline) {
  um::expects(timeline.runs.size() == plan.runs.size(), "the timeline of all of this plan's runs");
  const Occupancy occupancy{graph, plan.page};
  std::vector<Change> changes{{um::Nanoseconds{0}, signed_count(occupancy.always_near())}};
  for (const Life& life : find_lives(graph, plan.runs)) {
    const std::int64_t size = signed_count(occupancy.size(life.data));
    const um::Nanoseconds begin =
        life.outlives_step() ? um::Nanoseconds{0} : timeline.runs[life.begin()].begin;
    changes.push_back({begin, size});
    if (!life.outlives_step()) changes.push_back({timeline.runs[life.last()].end, -size});
  }
  const StateHome home{graph, occupancy, plan};
  if (!plan.runs.empty()) changes.push_back({um::Nanoseconds{0}, -signed_count(home.far())});
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const TaskRun& run = plan.runs[i];
    const std::int64_t workspace =
        signed_count(occupancy.workspace_size(graph[run.task].algorithms[run.algorithm].workspace));
    if (workspace == 0) continue;
    changes.push_back({timeline.runs[i].begin, workspace});
    changes.push_back({timeline.runs[i].end, -workspace});
  }
  for (std::size_t i = 0; i < timeline.offloads.size(); ++i) {
    const std::uint32_t frees_after = plan.offloads[i].frees_after();
    const um::Nanoseconds in_use =
        frees_after == 0 ? um::Nanoseconds{0} : timeline.runs[frees_after - 1].end;
    changes.push_back(
        {std::max(timeline.offloads[i].end, in_use), -signed_count(plan.offloads[i].size)});
  }
  for (std::size_t i = 0; i < timeline.prefetches.size(); ++i) {
    changes.push_back({timeline.prefetches[i].begin, signed_count(plan.prefetches[i].size)});
  }
  // At one moment, what is freed is freed before what is taken.
  std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
  });
  std::vector<MemorySample> curve;
  std::int64_t near = 0;
  for (const Change& change : changes) {
    near += change.bytes;
    if (!curve.empty() && curve.back().time == change.time) curve.pop_back();
    curve.push_back(
        {change.time, um::Bytes{static_cast<std::uint64_t>(std::max<std::int64_t>(0, near))}});
  }
  return curve;
}

}  // namespace spillway::prefetch
