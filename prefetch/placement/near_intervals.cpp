#include "prefetch/placement/near_intervals.h"

#include <algorithm>
#include <utility>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/state_home.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

// The moves of one block that do not yet belong to a near interval.
struct BlockMoves {
  std::vector<std::uint32_t> offloads;
  std::vector<std::uint32_t> prefetches;
  std::size_t next = 0;
};

std::vector<BlockMoves> moves_by_block(const TaskGraph& graph, const Plan& plan) {
  std::vector<BlockMoves> moves(graph.data.size());
  for (std::uint32_t i = 0; i < plan.offloads.size(); ++i) {
    moves[static_cast<std::size_t>(plan.offloads[i].data)].offloads.push_back(i);
  }
  for (std::uint32_t i = 0; i < plan.prefetches.size(); ++i) {
    moves[static_cast<std::size_t>(plan.prefetches[i].data)].prefetches.push_back(i);
  }
  return moves;
}

// Splits a life at its swaps: a whole block that leaves returns before its next use.
void add_intervals(const Life& life, um::Bytes size, const Plan& plan, BlockMoves& moves,
                   std::vector<NearInterval>& intervals) {
  NearInterval interval{
      .data = life.data, .size = um::round_up(size, kSmallestPage), .first = life.begin()};
  for (; moves.next < moves.offloads.size(); ++moves.next) {
    const std::uint32_t offload = moves.offloads[moves.next];
    if (plan.offloads[offload].frees_after() > life.last()) break;
    interval.is_offloaded = true;
    interval.last = offload;
    intervals.push_back(interval);
    interval.is_prefetched = true;
    interval.first = moves.prefetches.at(moves.next);
    interval.is_offloaded = false;
  }
  interval.last = life.last();
  intervals.push_back(interval);
}

// Adds intervals of a far update's gradient, which leaves after its last use, and possibly before.
void add_sent_intervals(const Life& life, um::Bytes size, const BlockMoves& moves,
                        std::vector<NearInterval>& intervals) {
  NearInterval interval{.data = life.data,
                        .size = um::round_up(size, kSmallestPage),
                        .is_offloaded = true,
                        .first = life.begin()};
  for (std::size_t i = 0; i < moves.offloads.size(); ++i) {
    interval.is_prefetched = i > 0;
    if (i > 0) interval.first = moves.prefetches.at(i - 1);
    interval.last = moves.offloads[i];
    intervals.push_back(interval);
  }
}

// State that is far between steps is prefetched before it is offloaded. Other state leaves first,
// and its last near interval continues in the next step.
void add_state_intervals(const Life& life, um::Bytes size, bool is_far, const BlockMoves& moves,
                         std::vector<NearInterval>& intervals) {
  NearInterval interval{.data = life.data, .size = um::round_up(size, kSmallestPage)};
  const std::size_t count = moves.prefetches.size();
  if (count == 0) {
    interval.last = life.last();
    interval.spans_steps = true;
    intervals.push_back(interval);
    return;
  }
  interval.is_prefetched = interval.is_offloaded = true;
  for (std::size_t i = 0; i < count; ++i) {
    interval.first = moves.prefetches[i];
    interval.spans_steps = !is_far && i + 1 == count;
    interval.last = moves.offloads.at(is_far ? i : (i + 1) % count);
    intervals.push_back(interval);
  }
}

}  // namespace

std::vector<NearInterval> find_near_intervals(const TaskGraph& graph, const Plan& plan) {
  um::expects(plan.residency == Residency::kPlanned && moves_whole_blocks(plan, graph),
              "near intervals are of whole blocks that a plan moves");
  const BlockSizes block_sizes{graph, plan.page};
  const StateHome home{graph, block_sizes, plan};
  std::vector<BlockMoves> moves = moves_by_block(graph, plan);
  std::vector<NearInterval> intervals;
  for (const Life& life : find_lives(graph, plan.runs)) {
    if (!block_sizes.is_movable(life.data)) continue;
    BlockMoves& of_block = moves[static_cast<std::size_t>(life.data)];
    if (life.is_sent) {
      add_sent_intervals(life, graph[life.data].size, of_block, intervals);
    } else if (life.outlives_step()) {
      add_state_intervals(life, graph[life.data].size, home.far_pages(life.data).front(), of_block,
                          intervals);
    } else {
      add_intervals(life, graph[life.data].size, plan, of_block, intervals);
    }
  }
  for (Position p = 0; p < plan.runs.size(); ++p) {
    const TaskRun& run = plan.runs[p];
    const um::Bytes workspace = graph[run.task].algorithms[run.algorithm].workspace;
    if (block_sizes.workspace_size(workspace) == um::Bytes{}) continue;
    intervals.push_back({.is_workspace = true,
                         .size = um::round_up(workspace, kSmallestPage),
                         .first = p,
                         .last = p});
  }
  std::ranges::stable_sort(intervals, {}, [](const NearInterval& interval) {
    return std::pair{interval.is_prefetched, interval.first};
  });
  return intervals;
}

}  // namespace spillway::prefetch
