#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Alignment of pinned blocks; their sizes are rounded to it.
inline constexpr um::Bytes kNearAlignment{64};

/// Possible pages: powers of two between these bounds.
inline constexpr um::Bytes kSmallestPage{4ULL << 10U};
inline constexpr um::Bytes kLargestPage{2ULL << 20U};

/// Returns the largest block that is pinned near: moving it would waste most of a page.
[[nodiscard]] constexpr um::Bytes largest_small(um::Bytes page) {
  return um::Bytes{(page.count() - 1) / 4};
}

/// How the blocks of a graph occupy near memory when residency is managed in pages.
///
/// A tensor or offloadable state of at least a quarter page is movable and occupies whole pages.
/// Other state and smaller tensors are pinned: always near. A workspace follows the same rule:
/// small ones share one pinned buffer.
class BlockSizes {
 public:
  BlockSizes(const TaskGraph& graph, um::Bytes page);

  [[nodiscard]] um::Bytes page() const { return page_; }
  /// Returns the bytes of everything that never moves: state, small tensors, the small-workspace
  /// buffer.
  [[nodiscard]] um::Bytes pinned() const { return pinned_; }
  [[nodiscard]] um::Bytes small_workspace() const { return small_workspace_; }

  [[nodiscard]] bool is_movable(DataId id) const { return size(id) > um::Bytes{}; }
  /// Returns whole pages of a movable block; zero for a pinned one.
  [[nodiscard]] um::Bytes size(DataId id) const { return sizes_[static_cast<std::size_t>(id)]; }
  /// Returns DataBlock::lies_in if both blocks are always near, otherwise nullopt.
  [[nodiscard]] std::optional<DataId> host_of(const TaskGraph& graph, DataId id) const {
    const std::optional<DataId> host = graph[id].lies_in;
    return host && !is_movable(id) && !is_movable(*host) ? host : std::nullopt;
  }
  /// Returns the whole pages that `workspace` takes while its task runs; zero for a small one.
  [[nodiscard]] um::Bytes workspace_size(um::Bytes workspace) const;

  /// Returns the bytes that a budget leaves for movable blocks and workspaces beside pinned(), in
  /// whole pages; at most their sum.
  [[nodiscard]] um::Bytes pool(um::Bytes budget) const {
    const um::Bytes left = um::saturating_difference(budget, pinned_);
    return std::min(um::round_down(left, page_), movable_);
  }

 private:
  [[nodiscard]] bool is_small(um::Bytes size) const { return size <= largest_small(page_); }

  um::Bytes page_;
  um::Bytes pinned_;
  um::Bytes movable_;  // whole pages of all movable blocks, and of the largest workspace
  um::Bytes small_workspace_;
  std::vector<um::Bytes> sizes_;
};

/// Returns the largest page with little rounding loss over the tensors of `graph`: at most 20 % for
/// 2 MiB, which is one huge page, otherwise at most 5 %, down to 4 KiB. Small networks thus keep
/// useful budgets. Smaller pages are slower in steps, and moves cost more. Example: GoogLeNet,
/// batch 32, 40 %, `capacity`: 1.29 s in pages of 2 MiB as predicted; in pages of 512 KiB 1.48 s
/// instead of 1.26 s.
[[nodiscard]] um::Bytes choose_page(const TaskGraph& graph);

}  // namespace spillway::prefetch
