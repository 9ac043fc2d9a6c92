#include "prefetch/moves/far_between_steps.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace spillway::prefetch {

using um::Bytes;

std::vector<DataId> by_idle_time(const BlockSizes& block_sizes, std::span<const Life> lives) {
  std::vector<std::pair<Position, DataId>> idle;
  for (const Life& life : lives) {
    if (!life.outlives_step() || !block_sizes.is_movable(life.data)) continue;
    const Position first = life.accesses.front().position;
    const Position last = life.accesses.back().position;
    idle.emplace_back(first + (life.whole_step - 1 - last), life.data);
  }
  std::ranges::stable_sort(idle, std::ranges::greater{},
                           [](const auto& each) { return each.first; });
  std::vector<DataId> result;
  result.reserve(idle.size());
  for (const auto& [runs, data] : idle) result.push_back(data);
  return result;
}

std::vector<FarInterval> far_intervals_from_start(const BlockSizes& block_sizes,
                                                  std::span<const Life> lives,
                                                  const CoverOptions& options) {
  std::vector<FarInterval> far_intervals;
  for (const Life& life : lives) {
    const auto data = static_cast<std::size_t>(life.data);
    if (data >= options.far_between_steps.size() || !options.far_between_steps[data]) continue;
    const Bytes size = block_sizes.size(life.data);
    const IdleInterval idle{.data = life.data,
                            .next = life.accesses.front().position,
                            .is_written = false,
                            .from_start = true};
    const Bytes chunk = options.whole_blocks ? size : options.chunk;
    for (Bytes offset; offset < size; offset += chunk) {
      far_intervals.push_back({idle, offset, std::min(chunk, size - offset)});
    }
  }
  return far_intervals;
}

}  // namespace spillway::prefetch
