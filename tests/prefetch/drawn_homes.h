#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/home_search.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/moves/timed_schedule.h"
#include "prefetch/planner.h"

namespace spillway::prefetch::testing {

/// Draws for every block of state a part that is far between steps, and a part that is near with a
/// far copy. Whole blocks are completely far, near with a far copy, or near.
inline CoverOptions draw_homes(const Problem& problem, const BlockSizes& block_sizes) {
  CoverOptions options{.chunk = problem.chunk, .whole_blocks = problem.whole_blocks, .homes = {}};
  options.free_first = *rc::gen::arbitrary<bool>();
  for (std::size_t i = 0; i < problem.graph.data.size(); ++i) {
    HomeBytes& home = options.homes.emplace_back();
    const DataId data{static_cast<std::uint32_t>(i)};
    if (!problem.graph[data].is_offloadable) continue;
    const std::uint64_t size = block_sizes.size(data) / problem.page;
    std::uint64_t far = *rc::gen::inRange<std::uint64_t>(0, size + 1);
    std::uint64_t copied = *rc::gen::inRange<std::uint64_t>(0, size - far + 1);
    if (problem.whole_blocks) {
      copied = copied > 0 ? size : 0;
      far = copied == 0 && far > 0 ? size : 0;
    }
    const std::uint64_t page = problem.page.count();
    home = {.far = um::Bytes{far * page}, .copied = um::Bytes{copied * page}};
  }
  return options;
}

/// Returns a plan with the runs in order and drawn homes of state, with moves scheduled in time or
/// by runs; nullopt if it does not fit.
inline std::optional<Plan> plan_with_drawn_homes(const Problem& problem) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const um::Bytes pool = block_sizes.pool(problem.budget);
  const CoverOptions options = draw_homes(problem, block_sizes);
  Plan plan = empty_plan(problem, runs_in_order(problem.graph));
  const std::vector<Life> lives = find_lives(problem.graph, plan.runs);
  const std::vector<um::Bytes> live = demand(problem.graph, block_sizes, plan.runs, lives);
  std::vector<FarInterval> away = far_intervals_from_start(block_sizes, lives, options);
  const auto chosen = cover(block_sizes, without(live, away), lives, pool, options);
  if (!chosen) return std::nullopt;
  away.insert(away.end(), chosen->begin(), chosen->end());
  const std::vector<FarInterval> copies = copies_from_start(lives, options);
  const std::vector<double> before(plan.runs.size() + 1);  // unknown durations
  if (*rc::gen::arbitrary<bool>()) {
    Room room{without(live, away)};
    std::vector<FarInterval> needed = needed_of(away, pool, room);
    for (FarInterval renewed : renewals(needed, lives, before, 1, options)) {
      renewed.needed = renewed.next;
      needed.push_back(renewed);
    }
    const MoveOrder order{.is_eager = *rc::gen::arbitrary<bool>(),
                          .prefetches_first = *rc::gen::arbitrary<bool>()};
    const NearDemand needs{.runs = live, .at_end = demand_at_end(block_sizes, lives), .pool = pool};
    schedule_in_time(needed, needs, problem.profile, order, plan, copies);
  } else {
    std::vector<Swap> swaps = return_early(away, live, pool);
    const std::vector<FarInterval> kept{swaps.begin(), swaps.end()};
    const std::vector<Swap> renewed = renewals(kept, lives, before, 1, options);
    swaps.insert(swaps.end(), renewed.begin(), renewed.end());
    add_moves(std::move(swaps), problem.profile.link, plan, copies);
  }
  return plan;
}

}  // namespace spillway::prefetch::testing
