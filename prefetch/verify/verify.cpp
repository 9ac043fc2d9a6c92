#include "prefetch/verify/verify.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/verify/dataflow.h"
#include "prefetch/verify/exchange_check.h"
#include "prefetch/verify/far_runs.h"
#include "prefetch/verify/residency_check.h"
#include "prefetch/verify/worst_case.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Executes the conditions alone: whichever queue can go on goes on, until all have ended or none
// can.
std::optional<Violation> check_progress(const Plan& plan) {
  Progress now;
  const auto advance = [&now](const auto& queue, std::uint32_t Progress::*count) {
    const std::uint32_t before = now.*count;
    while (now.*count < queue.size() && now.reaches(queue[now.*count].after)) ++(now.*count);
    return now.*count != before;
  };
  bool moved = true;
  while (moved) {
    moved = advance(plan.runs, &Progress::runs);
    moved = advance(plan.offloads, &Progress::offloads) || moved;
    moved = advance(plan.prefetches, &Progress::prefetches) || moved;
  }
  if (now.runs == plan.runs.size() && now.offloads == plan.offloads.size() &&
      now.prefetches == plan.prefetches.size()) {
    return std::nullopt;
  }
  return Violation{"the plan waits for ever after run " + std::to_string(now.runs) + ", offload " +
                   std::to_string(now.offloads) + " and prefetch " +
                   std::to_string(now.prefetches)};
}

// Who waits for an offload counts on its room, so the block's last readers must have ended by then,
// which the end of the transfer alone does not say.
std::optional<Violation> check_room(const TaskGraph& graph, const Plan& plan) {
  std::vector<std::uint32_t> free_after{0};  // by how many offloads have ended
  for (const Move& move : plan.offloads) {
    const std::uint32_t read_on = move.free_after > move.after.runs ? move.free_after : 0;
    free_after.push_back(std::max(free_after.back(), read_on));
  }
  for (std::uint32_t p = 0; p < plan.runs.size(); ++p) {
    if (free_after[plan.runs[p].after.offloads] > p) {
      return Violation{graph[plan.runs[p].task].name + " counts on the room of a block in use"};
    }
  }
  for (const Move& move : plan.prefetches) {
    if (move.is_clean || move.free_after > 0) {
      return Violation{"a prefetch of " + graph[move.data].name +
                       " is clean or read on, as only an offload can be"};
    }
    if (free_after[move.after.offloads] > move.after.runs) {
      return Violation{"a prefetch of " + graph[move.data].name +
                       " counts on the room of a block in use"};
    }
  }
  return std::nullopt;
}

std::variant<Verified, Violation> verify_on_demand(const TaskGraph& graph,
                                                   const BlockSizes& block_sizes,
                                                   const Plan& plan) {
  if (!plan.offloads.empty() || !plan.prefetches.empty()) {
    return Violation{"a plan that pages on demand has moves"};
  }
  if (!graph.far_updates.empty()) {
    return Violation{"a plan that pages on demand updates nothing on the far side"};
  }
  if (!graph.exchanges.empty()) {
    return Violation{"a plan that pages on demand exchanges nothing between ranks"};
  }
  if (block_sizes.pinned() > plan.budget) {
    return Violation{"what is always near does not fit in the budget of " +
                     um::to_string(plan.budget)};
  }
  const std::vector<Bytes> sets = working_sets(graph, block_sizes, plan.runs);
  const auto largest = std::ranges::max_element(sets);
  if (largest != sets.end() && *largest > block_sizes.pool(plan.budget)) {
    const TaskRun& run = plan.runs[static_cast<std::size_t>(largest - sets.begin())];
    return Violation{graph[run.task].name + " alone does not fit in the budget"};
  }
  return Verified{plan.budget};
}

}  // namespace

std::variant<Verified, Violation> verify(const TaskGraph& graph, const Plan& plan) {
  if (plan.graph != fingerprint(graph))
    return Violation{"the plan was made for another task graph"};
  if (!std::has_single_bit(plan.page.count())) return Violation{"the page is no power of two"};
  if (plan.page < kSmallestPage || plan.page > kLargestPage) {
    return Violation{"the page is smaller than 4 KiB or larger than 2 MiB"};
  }
  if (auto violation = check_dataflow(graph, plan.runs)) return *violation;
  if (auto violation = check_progress(plan)) return *violation;
  if (auto violation = check_exchanges(graph, plan)) return *violation;
  const BlockSizes block_sizes{graph, plan.page};
  if (plan.residency == Residency::kOnDemand) return verify_on_demand(graph, block_sizes, plan);
  const std::vector<Life> lives = find_lives(graph, plan.runs);
  if (auto violation = check_residency(graph, block_sizes, plan, lives)) return *violation;
  if (auto violation = check_far_runs(graph, block_sizes, plan)) return *violation;
  if (auto violation = check_room(graph, plan)) return *violation;
  const Bytes peak = worst_case_peak(graph, block_sizes, plan, lives);
  const Bytes room = block_sizes.pinned() + block_sizes.pool(plan.budget);
  if (peak > room || block_sizes.pinned() > plan.budget) {
    return Violation{"the plan may use " + um::to_string(peak) +
                     " of near memory, more than its budget of " + um::to_string(plan.budget)};
  }
  return Verified{peak};
}

}  // namespace spillway::prefetch
