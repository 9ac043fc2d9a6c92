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

/// The near memory that a step needs, everything included, with each task's first algorithm.
struct NearNeed {
  um::Bytes resident;             ///< when nothing is moved: the peak of all live blocks
  um::Bytes peak_with_workspace;  ///< the same with room for the workspace of any algorithm
  um::Bytes smallest;     ///< the least budget any plan can work with (moDNN Eq. 2 at this batch)
  TaskId largest_task{};  ///< the task that decides `smallest`
};

[[nodiscard]] NearNeed near_need(const TaskGraph& graph, const BlockSizes& block_sizes);

/// A budget that no plan can keep, and what would work.
struct Infeasible {
  TaskId task{};              ///< the task that needs most: it decides the next
  um::Bytes smallest_budget;  ///< the smallest budget that works
};

/// The least budget that keeps `near` movable bytes during each of `runs`, beside what is
/// pinned, and the task that decides it.
[[nodiscard]] Infeasible need_max(const BlockSizes& block_sizes, std::span<const TaskRun> runs,
                                  std::span<const um::Bytes> near);

/// One sentence for the user: the task that needs most, and the smallest budget that works.
[[nodiscard]] std::string to_string(const Infeasible& infeasible, const TaskGraph& graph,
                                    um::Bytes budget);

/// What a planner is given. The graph and the profile must outlive it.
struct Problem {
  const TaskGraph& graph;
  const Profile& profile;
  um::Bytes budget;
  um::Bytes page;
  um::Bytes chunk{16ULL << 20U};  ///< where fractional plans cut blocks; a multiple of the page
  bool whole_blocks = false;      ///< moves take whole blocks: what the copy mode can execute
  bool may_recompute = false;  ///< cheap tasks may run again instead of their outputs being moved
};

/// The size of chunks that keeps what latency costs below a hundredth: at least 100 * latency *
/// bandwidth and 16 MiB, a power of two. Chunks that nothing keeps
/// apart are moved together: add_moves().
[[nodiscard]] um::Bytes chunk_for(const LinkProfile& link);

/// Why no plan keeps the problem's budget.
[[nodiscard]] Infeasible infeasible(const Problem& problem);

/// How the size of sub-batches is found when the user leaves it open.
enum class SubBatchRule {
  kSearch,     ///< plan several sizes, take the fastest: search_sub_batches()
  kWorkingSet  ///< the largest whose tasks fit with fast algorithms: converge_sub_batches()
};

/// The planner's work grows too fast for a step of so many tasks, whatever the budget: says how, up
/// to where it plans, and what plans such a step instead.
class TooManyTasks final : public um::Error {
 public:
  using Error::Error;
};

/// A strategy: turns a profiled step into a plan.
///
/// Pure and stateless; the same problem gives the same plan on every machine. Every plan it returns
/// verifies.
class Planner {
 public:
  virtual ~Planner() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// One line for --help: what it does and where it comes from.
  [[nodiscard]] virtual std::string_view description() const = 0;
  [[nodiscard]] virtual SubBatchRule sub_batch_rule() const { return SubBatchRule::kSearch; }
  /// True when it moves offloadable state; else that stays near, in whole pages.
  [[nodiscard]] virtual bool moves_state() const { return false; }
  /// True when it also plans graphs with far updates (TaskGraph::far_updates); no other may be
  /// asked.
  [[nodiscard]] virtual bool updates_far() const { return false; }
  /// Requires: the profile was made for the graph. Throws: TooManyTasks.
  [[nodiscard]] virtual std::variant<Plan, Infeasible> plan(const Problem& problem) const = 0;
};

/// What users ask about a plan.
struct PlanFacts {
  um::Bytes offloaded;   ///< sent over the link in a step
  um::Bytes prefetched;  ///< fetched over the link in a step
  um::Bytes state_far;   ///< of the state, far between steps
  std::size_t recomputed_tasks = 0;
  std::size_t far_updates = 0;                    ///< updates that run on the far side
  std::map<std::string, std::size_t> algorithms;  ///< runs of convolutions, by algorithm
};

[[nodiscard]] PlanFacts facts_of(const Plan& plan, const TaskGraph& graph);

/// All tasks once with their fastest algorithms, one after another: a step with room for
/// everything, and the common denominator of all ratios ("compute_seconds" in every JSON).
[[nodiscard]] um::Nanoseconds fastest_step(const Profile& profile);

}  // namespace spillway::prefetch
