#include "prefetch/planner.h"

#include <algorithm>

#include "prefetch/block_sizes.h"
#include "um/bytes.h"

namespace spillway::prefetch {

um::Bytes chunk_for(const LinkProfile& link) {
  const double fastest =
      std::max(link.offload.bytes_per_second(), link.prefetch.bytes_per_second());
  const double wanted = 100 * um::seconds(link.latency) * fastest;
  um::Bytes chunk{16ULL << 20U};
  while (static_cast<double>(chunk.count()) < wanted && chunk.count() < 1ULL << 40U) {
    chunk += chunk;
  }
  return chunk;
}

Infeasible infeasible(const Problem& problem) {
  const NearNeed need = near_need(problem.graph, BlockSizes{problem.graph, problem.page});
  return {.task = need.largest_task, .smallest_budget = need.smallest};
}

}  // namespace spillway::prefetch
