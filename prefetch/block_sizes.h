#pragma once

#include <algorithm>
#include <vector>

#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Alignment of pinned blocks; their sizes are rounded to it.
inline constexpr um::Bytes kNearAlignment{64};

/// The pages there may be: powers of two between these.
inline constexpr um::Bytes kSmallestPage{4ULL << 10U};
inline constexpr um::Bytes kLargestPage{2ULL << 20U};

/// The largest block that always stays near in pages of that size: moving it would waste most of
/// a page.
[[nodiscard]] constexpr um::Bytes largest_small(um::Bytes page) {
  return um::Bytes{(page.count() - 1) / 4};
}

/// How the blocks of a graph occupy near memory when residency is managed in pages.
///
/// A tensor or offloadable state of at least a quarter page is movable and occupies whole pages.
/// Other state, and what is too small to be worth a page, is pinned: always near. A workspace
/// follows the same rule: small ones share one pinned buffer.
class BlockSizes {
 public:
  BlockSizes(const TaskGraph& graph, um::Bytes page);

  [[nodiscard]] um::Bytes page() const { return page_; }
  /// Bytes of everything that is never moved: state, small tensors, the small-workspace buffer.
  [[nodiscard]] um::Bytes pinned() const { return pinned_; }
  [[nodiscard]] um::Bytes small_workspace() const { return small_workspace_; }

  [[nodiscard]] bool is_movable(DataId id) const { return size(id) > um::Bytes{}; }
  /// Whole pages of a movable block; zero for a pinned one.
  [[nodiscard]] um::Bytes size(DataId id) const { return sizes_[static_cast<std::size_t>(id)]; }
  /// Whole pages that `workspace` takes while its task runs; zero for a small one.
  [[nodiscard]] um::Bytes workspace_size(um::Bytes workspace) const;

  /// Bytes for movable blocks and workspaces that a budget leaves beside pinned(), in whole
  /// pages; no more than all of them together, whatever the budget: nothing could use it.
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

/// The largest page with which rounding to pages adds little to the tensors of `graph`: at most
/// 20 % for 2 MiB, which the processor maps as one huge page, at most 5 % below, down to 4 KiB:
/// small networks still have budgets worth the name. Steps of smaller pages are slower than their
/// tasks were alone, and each move costs more: GoogLeNet at batch 32 and 40 % takes 1.29 s by
/// `capacity`, as predicted, in pages of 2 MiB, and 1.48 s instead of 1.26 s in pages of 512 KiB.
[[nodiscard]] um::Bytes choose_page(const TaskGraph& graph);

}  // namespace spillway::prefetch
