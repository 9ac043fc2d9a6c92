#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// An index into the sequence of runs.
using Position = std::uint32_t;

/// One run's use of a block.
struct BlockAccess {
  Position position;
  bool reads;
  bool writes;
};

/// A live interval: a block holds content that is still needed. A tensor lives from the run that
/// overwrites it to the last run that reads it; a recomputed one has two lives. Offloadable state
/// lives during the whole step. A sent block lives from the run that overwrites it to the step's
/// end.
struct Life {
  DataId data;
  std::vector<BlockAccess> accesses;  ///< in ascending position, at least one
  Position whole_step = 0;            ///< of state: the number of runs in the step; else 0
  bool is_sent = false;               ///< DataBlock::is_sent

  [[nodiscard]] bool outlives_step() const { return whole_step > 0; }
  /// True if its content exists when the step begins.
  [[nodiscard]] bool begins_before_step() const { return outlives_step() && !is_sent; }
  [[nodiscard]] Position begin() const {
    return begins_before_step() ? 0 : accesses.front().position;
  }
  [[nodiscard]] Position last() const {
    return outlives_step() ? whole_step - 1 : accesses.back().position;
  }
};

/// Returns the lives of all tensors and all offloadable state of `graph` under the sequence `runs`,
/// in order of their first use. Complexity: O(accesses).
[[nodiscard]] std::vector<Life> find_lives(const TaskGraph& graph, std::span<const TaskRun> runs);

/// Implements find_lives() for many sequences of one graph, which must outlive it. Reuses memory
/// and common lookups.
class LifeFinder {
 public:
  explicit LifeFinder(const TaskGraph& graph);

  /// As find_lives(); valid until the next call.
  [[nodiscard]] std::span<const Life> find(std::span<const TaskRun> runs);

 private:
  friend std::vector<Life> find_lives(const TaskGraph& graph, std::span<const TaskRun> runs);

  struct Use {
    DataId data;
    bool reads;
    bool writes;
    bool is_state;
    bool is_sent;
  };

  std::vector<Use> uses_;                 // of all tasks, one after another
  std::vector<std::uint32_t> first_use_;  // by task, and the end
  std::vector<std::uint32_t> current_;    // by block: index into lives_
  std::vector<Life> lives_;               // may be longer than the result, to keep memory
};

/// Returns the movable bytes that are near during each run when nothing is offloaded: live blocks
/// and the run's workspace, in whole pages.
[[nodiscard]] std::vector<um::Bytes> demand(const TaskGraph& graph, const BlockSizes& block_sizes,
                                            std::span<const TaskRun> runs,
                                            std::span<const Life> lives);

/// Returns the movable bytes that are near after the last run when nothing is offloaded: state.
[[nodiscard]] um::Bytes demand_at_end(const BlockSizes& block_sizes, std::span<const Life> lives);

/// Returns the movable bytes that the run at each position needs: its own operands and workspace
/// (moDNN Eq. 1).
[[nodiscard]] std::vector<um::Bytes> working_sets(const TaskGraph& graph,
                                                  const BlockSizes& block_sizes,
                                                  std::span<const TaskRun> runs);

/// The blocks that `task` reads or writes, each once.
[[nodiscard]] std::vector<DataId> operands(const Task& task);

/// A stretch in which no run uses a block that is needed later: between two uses, or, for state,
/// between a use and an end of the step. The block may be far meanwhile.
struct IdleInterval {
  DataId data{};
  Position begin = 0;    ///< the run that begins the block's life
  Position written = 0;  ///< the last run before it that writes the block; `begin` if none does
  Position last = 0;     ///< the last run before it that uses the block; `begin` if none does
  Position next = 0;     ///< the run that uses the block next
  /// True if the block was written since the step began, so an older far copy is stale.
  bool is_written = true;
  /// State that no run has used since the step began; `last` is 0.
  bool from_start = false;
  /// State that no run uses until the step ends; `next` is the number of runs.
  bool to_end = false;

  /// True when the last earlier use only reads the block.
  [[nodiscard]] bool follows_a_read() const { return !is_written || written < last; }
};

/// Returns the idle intervals between two uses of each movable block, with at least one run in
/// each. Sorted as `lives`, then by time. Complexity: O(accesses).
[[nodiscard]] std::vector<IdleInterval> find_idle_intervals(const BlockSizes& block_sizes,
                                                            std::span<const Life> lives);

/// Returns the interval between the last use before `turn` and the first use from `turn` on. It may
/// be empty. Requires: the life has a use from `turn` on, or the caller sets `next`.
[[nodiscard]] IdleInterval idle_interval_at(const Life& life, Position turn);

}  // namespace spillway::prefetch
