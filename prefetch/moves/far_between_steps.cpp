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

std::vector<HomeBytes> homes_for_far_updates(const TaskGraph& graph,
                                             const BlockSizes& block_sizes) {
  std::vector<HomeBytes> homes(graph.data.size());
  for (const FarUpdate& update : graph.far_updates) {
    for (const DataId id : {update.gradient, update.parameters}) {
      homes[static_cast<std::size_t>(id)].far = block_sizes.size(id);
    }
  }
  return homes;
}

namespace {

// Up to the first use of state.
IdleInterval at_start(const Life& life) {
  return {.data = life.data,
          .next = life.accesses.front().position,
          .is_written = false,
          .from_start = true};
}

}  // namespace

std::vector<FarInterval> far_intervals_from_start(const BlockSizes& block_sizes,
                                                  std::span<const Life> lives,
                                                  const CoverOptions& options) {
  std::vector<FarInterval> far_intervals;
  for (const Life& life : lives) {
    const Bytes size = options.home(life.data).far;
    if (size == Bytes{} || life.is_sent || !block_sizes.is_movable(life.data)) continue;
    const Bytes chunk = options.whole_blocks ? size : options.chunk;
    for (Bytes offset; offset < size; offset += chunk) {
      far_intervals.push_back({.offset = offset, .size = std::min(chunk, size - offset)});
      static_cast<IdleInterval&>(far_intervals.back()) = at_start(life);
      far_intervals.back().starts_far = true;
    }
  }
  return far_intervals;
}

std::vector<FarInterval> copies_from_start(std::span<const Life> lives,
                                           const CoverOptions& options) {
  std::vector<FarInterval> copies;
  for (const Life& life : lives) {
    const auto [far, copied] = options.home(life.data);
    if (copied > Bytes{}) copies.push_back({at_start(life), far, copied});
  }
  return copies;
}

std::vector<Swap> renewals(std::span<const FarInterval> far_intervals, std::span<const Life> lives,
                           std::span<const double> before, double out,
                           const CoverOptions& options) {
  std::vector<Bytes> end(options.homes.size());  // by block: of the bytes that leave uncopied
  for (const FarInterval& each : far_intervals) {
    if (each.is_written || each.starts_far || options.home(each.data).copied == Bytes{}) continue;
    Bytes& max = end[static_cast<std::size_t>(each.data)];
    max = std::max(max, each.offset + each.size);
  }
  std::vector<Swap> result;
  for (const Life& life : lives) {
    const HomeBytes home = options.home(life.data);
    if (home.copied == Bytes{}) continue;
    const Bytes stop = std::min(end[static_cast<std::size_t>(life.data)], home.with_far_copy());
    IdleInterval idle = idle_interval_at(life, life.whole_step);
    if (!idle.is_written || stop <= home.far) continue;
    idle.next = life.whole_step;
    const double size = static_cast<double>((stop - home.far).count());
    const auto back =
        std::ranges::lower_bound(before, before[idle.last + 1] + 2 * size / out) - before.begin();
    Swap swap{{idle, home.far, stop - home.far},
              std::min(static_cast<Position>(back), life.whole_step)};
    swap.needed = swap.back;
    swap.is_renewal = true;
    result.push_back(swap);
  }
  return result;
}

}  // namespace spillway::prefetch
