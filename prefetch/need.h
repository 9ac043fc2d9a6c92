#pragma once

#include <span>
#include <string>

#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

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

}  // namespace spillway::prefetch
