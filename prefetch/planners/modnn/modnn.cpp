#include "prefetch/planners/modnn/modnn.h"

#include <algorithm>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/planners/modnn/virtual_memory.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;
using um::Nanoseconds;

// Algorithm 1.
class VirtualExecution {
 public:
  explicit VirtualExecution(const Problem& problem)
      : problem_{problem},
        block_sizes_{problem.graph, problem.page},
        memory_{problem},
        runs_{runs_in_order(problem.graph)},
        expected_{Nanoseconds{0}} {
    for (const TaskRun& run : fastest_that_fit(problem)) {
      expected_.push_back(expected_.back() + problem.profile(run));
    }
  }

  Plan execute() {
    for (Position t = 0; t < runs_.size(); ++t) {
      memory_.begin(t);
      select_algorithm(t);
      prefetch_after(t);
      memory_.end(t, problem_.profile(runs_[t]));
    }
    const std::vector<Life> lives = find_lives(problem_.graph, runs_);
    const std::vector<Bytes> live = demand(problem_.graph, block_sizes_, runs_, lives);
    Plan plan = empty_plan(problem_, std::move(runs_));
    memory_.log().add_to(plan, live, block_sizes_.pool(problem_.budget));
    return plan;
  }

 private:
  [[nodiscard]] Bytes workspace(Position t, std::uint32_t algorithm) const {
    return block_sizes_.workspace_size(
        problem_.graph[runs_[t].task].algorithms[algorithm].workspace);
  }

  // Lines 9-14.
  void select_algorithm(Position t) {
    const auto count = static_cast<std::uint32_t>(problem_.graph[runs_[t].task].algorithms.size());
    std::optional<Nanoseconds> best;
    for (std::uint32_t algorithm = 0; count > 1 && algorithm < count; ++algorithm) {
      const auto gained = gain(t, algorithm);
      if (!gained || (best && *gained <= *best)) continue;
      best = gained;
      runs_[t].algorithm = algorithm;
    }
    memory_.take_workspace(workspace(t, runs_[t].algorithm));
  }

  // Eq. 5; nullopt without room for the workspace.
  [[nodiscard]] std::optional<Nanoseconds> gain(Position t, std::uint32_t algorithm) const {
    const Bytes size = workspace(t, algorithm);
    const auto scheme = memory_.scheme_for_workspace(size);
    if (!scheme) return std::nullopt;
    const TaskId task = runs_[t].task;
    const Nanoseconds duration = problem_.profile(task, algorithm);
    const Nanoseconds delayed = delay_of_prefetch(t, duration, size, *scheme);
    return problem_.profile(task, 0) - duration - scheme->delay - delayed;
  }

  // T_pre,alg(s) of Eq. 5. s is the nearest task that needs a prefetch after `scheme` has made room
  // for the workspace: of data that is far now, or leaves then.
  [[nodiscard]] Nanoseconds delay_of_prefetch(Position t, Nanoseconds duration, Bytes size,
                                              const OffloadScheme& scheme) const {
    const auto missing = memory_.next_missing(t);
    if (size == Bytes{} || (!missing && scheme.blocks.empty())) return Nanoseconds{0};
    const Position s = std::min(missing.value_or(scheme.next), scheme.next);
    Nanoseconds late = memory_.displaced(memory_.missing(s), size, scheme);
    for (const DataId block : scheme.blocks) {
      if (memory_.next_use(block) == s) late += memory_.transfer_time(memory_.size(block));
    }
    if (late == Nanoseconds{0}) return late;
    const Nanoseconds end = memory_.now() + scheme.delay + duration;
    const Nanoseconds start = std::max(end, memory_.link_free() + scheme.transfer);
    return std::max(start + late - expected_start(s, t, end), Nanoseconds{0});
  }

  // EST(s) when task t ends at `end`.
  [[nodiscard]] Nanoseconds expected_start(Position s, Position t, Nanoseconds end) const {
    return end + (expected_[s] - expected_[t + 1]);
  }

  // Lines 15-27. Tasks without missing blocks matter only before a task that has some.
  void prefetch_after(Position t) {
    const Nanoseconds end = memory_.now() + problem_.profile(runs_[t]);
    for (auto s = memory_.next_missing(t); s; s = memory_.next_missing(*s)) {
      const std::vector<DataId> blocks = memory_.missing(*s);
      if (!must_start_now(blocks, end, expected_start(*s, t, end))) return;
      for (Position i = t + 1; i <= *s; ++i) {
        if (!memory_.can_be_allocated(i, blocks)) return;
      }
      for (const DataId block : blocks) {
        if (!memory_.prefetch(block, *s)) return;
      }
    }
  }

  // Eq. 4 for a current task that ends at `end`.
  [[nodiscard]] bool must_start_now(const std::vector<DataId>& blocks, Nanoseconds end,
                                    Nanoseconds expected_start) const {
    Nanoseconds arrival = std::max(end, memory_.link_free());
    for (const DataId block : blocks) arrival += memory_.transfer_time(memory_.size(block));
    return arrival > expected_start;
  }

  const Problem& problem_;
  BlockSizes block_sizes_;
  VirtualMemory memory_;
  std::vector<TaskRun> runs_;
  std::vector<Nanoseconds> expected_;  // sum over the tasks before each position
};

// Returns the smallest budget that works: all state, and the largest sum of a task's operands and
// first workspace.
Infeasible smallest_need(const Problem& problem) {
  const BlockSizes block_sizes{problem.graph, problem.page};
  const std::vector<TaskRun> runs = runs_in_order(problem.graph);
  std::vector<Bytes> sets = working_sets(problem.graph, block_sizes, runs);
  for (std::size_t t = 0; t < sets.size(); ++t) {
    for (const DataId id : operands(problem.graph.tasks[t])) {
      if (problem.graph[id].kind == DataKind::kState) sets[t] -= block_sizes.size(id);
    }
  }
  const auto largest = std::ranges::max_element(sets);
  const Bytes always = block_sizes.pinned() + resident_state(problem.graph, block_sizes);
  if (largest == sets.end()) return {.task = {}, .smallest_budget = always};
  return {.task = TaskId(largest - sets.begin()), .smallest_budget = always + *largest};
}

}  // namespace

std::variant<Plan, Infeasible> plan_modnn(const Problem& problem) {
  const Infeasible need = smallest_need(problem);
  if (need.smallest_budget > problem.budget) return need;
  Plan plan = VirtualExecution{problem}.execute();
  return plan;
}

}  // namespace spillway::prefetch
