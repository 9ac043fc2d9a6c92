#include "prefetch/idle_interval.h"

namespace spillway::prefetch {
namespace {

IdleInterval begin_of(const Life& life) {
  return {.data = life.data,
          .begin = life.begin(),
          .written = life.begin(),
          .last = life.begin(),
          .is_written = !life.begins_before_step()};
}

void pass(const BlockAccess& access, IdleInterval& interval) {
  interval.last = access.position;
  if (!access.writes) return;
  interval.written = access.position;
  interval.is_written = true;
}

}  // namespace

std::vector<IdleInterval> find_idle_intervals(const BlockSizes& block_sizes,
                                              std::span<const Life> lives) {
  std::vector<IdleInterval> intervals;
  for (const Life& life : lives) {
    if (!block_sizes.is_movable(life.data)) continue;
    IdleInterval interval = begin_of(life);
    for (std::size_t a = 0; a + 1 < life.accesses.size(); ++a) {
      pass(life.accesses[a], interval);
      interval.next = life.accesses[a + 1].position;
      if (interval.next > interval.last + 1) intervals.push_back(interval);
    }
  }
  return intervals;
}

IdleInterval idle_interval_at(const Life& life, Position turn) {
  IdleInterval interval = begin_of(life);
  for (const BlockAccess& access : life.accesses) {
    interval.next = access.position;
    if (access.position >= turn) break;
    pass(access, interval);
  }
  return interval;
}

}  // namespace spillway::prefetch
