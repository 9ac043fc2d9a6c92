#pragma once

#include <algorithm>
#include <cstdint>

#include "prefetch/plan.h"

namespace spillway::prefetch::testing {

/// What takes how much room near, worked out apart from BlockSizes.
class CheckedRoom {
 public:
  CheckedRoom(const TaskGraph& graph, const Plan& plan)
      : graph_{graph}, page_{plan.page.count()}, pool_{find_pool(plan.budget.count())} {}

  /// A tensor or offloadable state of a quarter page or more moves, in whole pages.
  [[nodiscard]] bool moves(DataId id) const {
    return graph_[id].may_leave() && 4 * graph_[id].size.count() >= page_;
  }
  [[nodiscard]] std::uint64_t pages(std::uint64_t size) const { return up(size, page_) / page_; }
  [[nodiscard]] std::uint64_t workspace(const TaskRun& run) const {
    const std::uint64_t size = graph_[run.task].algorithms[run.algorithm].workspace.count();
    return 4 * size < page_ ? 0 : up(size, page_);
  }
  /// What the budget leaves beside what never moves, the buffer of small workspaces included.
  [[nodiscard]] std::uint64_t pool() const { return pool_; }

 private:
  [[nodiscard]] static std::uint64_t up(std::uint64_t size, std::uint64_t unit) {
    return (size + unit - 1) / unit * unit;
  }
  [[nodiscard]] std::uint64_t find_pool(std::uint64_t budget) const {
    std::uint64_t pinned = 0;
    for (std::size_t i = 0; i < graph_.data.size(); ++i) {
      if (!moves(DataId(i))) pinned += up(graph_.data[i].size.count(), 64);
    }
    std::uint64_t small = 0;
    for (const Task& task : graph_.tasks) {
      for (const Algorithm& algorithm : task.algorithms) {
        const std::uint64_t size = algorithm.workspace.count();
        if (4 * size < page_) small = std::max(small, size);
      }
    }
    return (budget - pinned - up(small, 64)) / page_ * page_;
  }

  const TaskGraph& graph_;
  std::uint64_t page_;
  std::uint64_t pool_;
};

}  // namespace spillway::prefetch::testing
