#include "prefetch/planners/modnn/move_log.h"

#include <cstdint>

#include "prefetch/moves/run_conditions.h"

namespace spillway::prefetch {

using um::Bytes;

void MoveLog::offload(DataId block, Bytes size, Position from, Position last, bool is_clean) {
  entries_.push_back({.move = {.data = block,
                               .offset = {},
                               .size = size,
                               .is_clean = is_clean,
                               .after = {.runs = from + 1},
                               .free_after = from < last ? last + 1 : 0}});
}

std::size_t MoveLog::load(DataId block, Bytes size, Position at, Position next) {
  entries_.push_back({.move = {.data = block, .offset = {}, .size = size, .after = {.runs = at}},
                      .is_load = true,
                      .next = next});
  return entries_.size() - 1;
}

void MoveLog::add_to(Plan& plan, std::span<const Bytes> demand, Bytes pool) const {
  std::vector<std::uint32_t> landed(plan.runs.size());
  for (const Entry& entry : entries_) {
    if (entry.is_cancelled) continue;
    Move move = entry.move;
    if (!entry.is_load) {
      plan.offloads.push_back(move);
      continue;
    }
    move.after.offloads = static_cast<std::uint32_t>(plan.offloads.size());
    plan.prefetches.push_back(move);
    landed[entry.next] = static_cast<std::uint32_t>(plan.prefetches.size());
  }
  add_run_conditions(demand, pool, Bytes{}, landed, plan);
}

}  // namespace spillway::prefetch
