#include "prefetch/simulate/timeline.h"

#include <algorithm>
#include <cstdint>

#include "prefetch/simulate/near_use.h"

namespace spillway::prefetch {

std::vector<MemorySample> memory_curve(const TaskGraph& graph, const Plan& plan,
                                       const Timeline& timeline) {
  std::vector<MemorySample> curve;
  std::int64_t near = 0;
  for (const NearChange& change : near_changes(graph, plan, timeline)) {
    near += change.bytes;
    if (!curve.empty() && curve.back().time == change.time) curve.pop_back();
    curve.push_back(
        {change.time, um::Bytes{static_cast<std::uint64_t>(std::max<std::int64_t>(0, near))}});
  }
  return curve;
}

}  // namespace spillway::prefetch
