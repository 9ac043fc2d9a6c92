#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway::prefetch {

/// The total near memory that a step needs, with each task's first algorithm.
struct NearNeed {
  um::Bytes resident;             ///< when nothing is moved: the peak of all live blocks
  um::Bytes peak_with_workspace;  ///< resident, with room for the workspace of any algorithm
  um::Bytes smallest;     ///< the least budget any plan can work with (moDNN Eq. 2 at this batch)
  TaskId largest_task{};  ///< the task that decides `smallest`
};

[[nodiscard]] NearNeed near_need(const TaskGraph& graph, const BlockSizes& block_sizes);

/// A budget below the minimum, and the smallest budget that works.
struct Infeasible {
  TaskId task{};              ///< the task that needs most: it decides `smallest_budget`
  um::Bytes smallest_budget;  ///< the smallest budget that works
};

/// Returns the least budget that holds the `near` movable bytes of each of `runs` beside pinned
/// blocks, and the task that decides it.
[[nodiscard]] Infeasible need_max(const BlockSizes& block_sizes, std::span<const TaskRun> runs,
                                  std::span<const um::Bytes> near);

/// Returns one sentence for the user: the task that needs most, and the smallest budget that works.
[[nodiscard]] std::string to_string(const Infeasible& infeasible, const TaskGraph& graph,
                                    um::Bytes budget);

/// The input of a planner. The graph and the profile must outlive it.
struct Problem {
  const TaskGraph& graph;
  const Profile& profile;
  um::Bytes budget;
  um::Bytes page;
  um::Bytes chunk{16ULL << 20U};  ///< where fractional plans cut blocks; a multiple of the page
  bool whole_blocks = false;      ///< moves take whole blocks, as the copy mode requires
  bool may_recompute = false;     ///< cheap tasks may run again, which saves moving their outputs
  bool may_reorder = true;        ///< tasks may run in another order than the graph's: Precedence
  bool may_move = true;           ///< false: plans only order and recompute

  /// Returns the same problem for another graph or other times, which must outlive it.
  [[nodiscard]] Problem with(const TaskGraph& other, const Profile& times) const {
    return {.graph = other,
            .profile = times,
            .budget = budget,
            .page = page,
            .chunk = chunk,
            .whole_blocks = whole_blocks,
            .may_recompute = may_recompute,
            .may_reorder = may_reorder,
            .may_move = may_move};
  }
};

/// Returns the chunk size at which latency costs less than a hundredth: at least 100 * latency *
/// bandwidth and 16 MiB, a power of two. Adjacent chunks with equal conditions are moved together:
/// add_moves().
[[nodiscard]] um::Bytes chunk_for(const LinkProfile& link);

/// Returns why no plan keeps the problem's budget.
[[nodiscard]] Infeasible infeasible(const Problem& problem);

/// How to find the size of micro-batches if the user does not set it.
enum class MicroBatchRule {
  kSearch,     ///< plan several sizes, take the fastest: search_micro_batches()
  kWorkingSet  ///< the largest with tasks that fit with fast algorithms: converge_micro_batches()
};

/// The step has too many tasks for the planner, under any budget. The message says the planner's
/// limit, and which planner handles such a step.
class TooManyTasks final : public um::Error {
 public:
  using Error::Error;
};

/// A planning strategy: turns a profiled step into a plan.
///
/// Pure and stateless; the same problem gives the same plan on every machine. Every returned plan
/// verifies.
class Planner {
 public:
  virtual ~Planner() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Returns one line for --help: what it does and where it comes from.
  [[nodiscard]] virtual std::string_view description() const = 0;
  [[nodiscard]] virtual MicroBatchRule micro_batch_rule() const { return MicroBatchRule::kSearch; }
  /// True if it moves offloadable state; otherwise state stays near, in whole pages.
  [[nodiscard]] virtual bool moves_state() const { return false; }
  /// True if it also plans graphs with far updates (TaskGraph::far_updates), which other planners
  /// must not be given.
  [[nodiscard]] virtual bool updates_far() const { return false; }
  /// True if a step's task variants are chosen with it: plan_varied(). Otherwise it plans the first
  /// variant of each task.
  [[nodiscard]] virtual bool chooses_variants() const { return false; }
  /// Requires: the profile was made for the graph. Throws: TooManyTasks.
  [[nodiscard]] virtual std::variant<Plan, Infeasible> plan(const Problem& problem) const = 0;
};

/// Figures of a plan for users.
struct PlanFacts {
  um::Bytes offloaded;   ///< sent over the link in a step
  um::Bytes prefetched;  ///< fetched over the link in a step
  um::Bytes state_far;   ///< bytes of state that are far between steps
  std::size_t recomputed_tasks = 0;
  std::size_t far_updates = 0;                    ///< updates that run on the far side
  std::map<std::string, std::size_t> algorithms;  ///< runs of convolutions, by algorithm
};

[[nodiscard]] PlanFacts facts_of(const Plan& plan, const TaskGraph& graph);

/// Returns the time of all tasks in sequence with their fastest algorithms: a step with room for
/// everything, and the denominator of all ratios ("compute_seconds" in every JSON).
[[nodiscard]] um::Nanoseconds fastest_step(const Profile& profile);

}  // namespace spillway::prefetch
