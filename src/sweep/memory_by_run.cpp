#include "src/sweep/memory_by_run.h"

#include <algorithm>
#include <cstddef>

namespace spillway {

std::vector<um::Bytes> memory_by_run(const prefetch::TaskGraph& graph, const prefetch::Plan& plan,
                                     const prefetch::Timeline& timeline) {
  const std::vector<prefetch::MemorySample> curve = prefetch::memory_curve(graph, plan, timeline);
  std::vector<um::Bytes> max;
  std::size_t at = 0;  // the last sample that is not after the run's begin
  for (const prefetch::Interval& run : timeline.runs) {
    while (at + 1 < curve.size() && curve[at + 1].time <= run.begin) ++at;
    um::Bytes here = curve[at].near;
    for (std::size_t i = at + 1; i < curve.size() && curve[i].time < run.end; ++i) {
      here = std::max(here, curve[i].near);
    }
    max.push_back(here);
  }
  return max;
}

}  // namespace spillway
