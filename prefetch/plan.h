#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// How far a step has come: the number of finished runs, offloads and prefetches of the plan. Each
/// sequence is executed in order, so three counts identify the finished entries.
struct Progress {
  std::uint32_t runs = 0;
  std::uint32_t offloads = 0;
  std::uint32_t prefetches = 0;

  /// True when this is at least as far as `other` in all three.
  [[nodiscard]] bool reaches(const Progress& other) const {
    return runs >= other.runs && offloads >= other.offloads && prefetches >= other.prefetches;
  }
  friend bool operator==(const Progress&, const Progress&) = default;
};

/// One execution of a task.
struct TaskRun {
  TaskId task{};
  std::uint32_t algorithm = 0;        ///< index into the task's algorithms
  bool is_recomputation = false;      ///< the task ran before in this step
  Progress after;                     ///< starts when the step has come this far
  std::uint32_t after_exchanges = 0;  ///< and when this many of the plan's exchanges have ended
  friend bool operator==(const TaskRun&, const TaskRun&) = default;
};

/// One transfer of whole pages of a block over the link.
struct Move {
  DataId data{};
  um::Bytes offset;  ///< into the block, a multiple of the page
  um::Bytes size;    ///< a multiple of the page
  /// Offload only: the far copy is still valid, so near memory is freed without a transfer.
  bool is_clean = false;
  Progress after;  ///< starts when the step has come this far
  /// Offload only: tasks may read the block until this many runs have ended; its room is free
  /// afterwards. Matters if it is more than `after.runs`.
  std::uint32_t free_after = 0;

  /// Returns how many runs have ended when the block's room is free, if the transfer has ended,
  /// too.
  [[nodiscard]] std::uint32_t frees_after() const { return std::max(after.runs, free_after); }
  friend bool operator==(const Move&, const Move&) = default;
};

/// One update on the far side. Far runs are a queue of their own, executed in order; only the end
/// of the step waits for them.
struct FarRun {
  std::uint32_t update = 0;  ///< index into TaskGraph::far_updates
  Progress after;            ///< starts when the step has come this far
  friend bool operator==(const FarRun&, const FarRun&) = default;
};

/// One exchange of gradients between ranks. Exchanges are a queue of their own, executed in order;
/// runs wait for them by TaskRun::after_exchanges.
struct ExchangeRun {
  std::uint32_t exchange = 0;    ///< index into TaskGraph::exchanges
  std::uint32_t after_runs = 0;  ///< starts when this many runs have ended
  friend bool operator==(const ExchangeRun&, const ExchangeRun&) = default;
};

/// Decides what is near.
enum class Residency {
  kPlanned,  ///< this plan: everything near is moved by it
  kOnDemand  ///< page faults and the eviction they cause
};

/// Everything decided before training: algorithms, moves and recomputations, their order, and what
/// each waits for.
///
/// A plan is a partial order: runs, offloads and prefetches are three queues, and the `after` of an
/// entry names the events it waits for. It is safe under any timing; `verify` proves that.
struct Plan {
  std::string planner;
  std::uint64_t graph = 0;  ///< fingerprint of the graph it was made for
  um::Bytes budget;
  um::Bytes page;
  Residency residency = Residency::kPlanned;
  std::vector<TaskRun> runs;
  std::vector<Move> offloads;
  std::vector<Move> prefetches;
  std::vector<FarRun> far_runs;        ///< each of the graph's far updates once
  std::vector<ExchangeRun> exchanges;  ///< each of the graph's exchanges once
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Returns the runs of a step without recomputation: every task once, in order, with its first
/// algorithm.
[[nodiscard]] inline std::vector<TaskRun> runs_in_order(const TaskGraph& graph) {
  std::vector<TaskRun> runs;
  runs.reserve(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) runs.push_back({.task = TaskId(i)});
  return runs;
}

/// Returns true when the plan moves blocks over the link, or may have to on demand.
[[nodiscard]] inline bool moves_anything(const Plan& plan) {
  return plan.residency == Residency::kOnDemand || !plan.offloads.empty() ||
         !plan.prefetches.empty();
}

/// Returns true when every move of the plan takes a whole block, as the copy mode requires.
[[nodiscard]] inline bool moves_whole_blocks(const Plan& plan, const TaskGraph& graph) {
  const auto is_whole = [&](const Move& move) {
    return move.offset == um::Bytes{} && move.size >= graph[move.data].size;
  };
  return std::ranges::all_of(plan.offloads, is_whole) &&
         std::ranges::all_of(plan.prefetches, is_whole);
}

}  // namespace spillway::prefetch
