#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/plan.h"
#include "prefetch/task_graph.h"

namespace spillway::prefetch {

/// A place in the sequence of runs.
using Position = std::uint32_t;

/// One run's use of a block.
struct BlockAccess {
  Position position;
  bool reads;
  bool writes;
};

/// A stretch of the step during which a block holds content that is still needed: a tensor from the
/// run that overwrites it to the last run that reads it (a recomputed one has two lives),
/// offloadable state all the time, what is sent from the run that overwrites it to the step's end.
struct Life {
  DataId data;
  std::vector<BlockAccess> accesses;  ///< in ascending position, at least one
  Position whole_step = 0;            ///< of state: the number of runs in the step; else 0
  bool is_sent = false;               ///< DataBlock::is_sent

  [[nodiscard]] bool outlives_step() const { return whole_step > 0; }
  /// Its content is there when the step begins.
  [[nodiscard]] bool begins_before_step() const { return outlives_step() && !is_sent; }
  [[nodiscard]] Position begin() const {
    return begins_before_step() ? 0 : accesses.front().position;
  }
  [[nodiscard]] Position last() const {
    return outlives_step() ? whole_step - 1 : accesses.back().position;
  }
};

/// The lives of all tensors and all offloadable state of `graph` under the sequence `runs`, in
/// order of their first use.
/// Complexity: O(accesses).
[[nodiscard]] std::vector<Life> find_lives(const TaskGraph& graph, std::span<const TaskRun> runs);

/// find_lives() for many sequences of one graph, which must outlive it: what they have in common is
/// looked up once, and memory is used again.
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
  std::vector<Life> lives_;               // more than there are: kept for their memory
};

/// Movable bytes near during each run when nothing is offloaded: live blocks and the run's
/// workspace, in whole pages.
[[nodiscard]] std::vector<um::Bytes> demand(const TaskGraph& graph, const BlockSizes& block_sizes,
                                            std::span<const TaskRun> runs,
                                            std::span<const Life> lives);

/// Movable bytes near after the last run when nothing is offloaded: those of state.
[[nodiscard]] um::Bytes demand_at_end(const BlockSizes& block_sizes, std::span<const Life> lives);

/// Movable bytes that the run at each position cannot do without: its own operands and workspace
/// (moDNN Eq. 1).
[[nodiscard]] std::vector<um::Bytes> working_sets(const TaskGraph& graph,
                                                  const BlockSizes& block_sizes,
                                                  std::span<const TaskRun> runs);

/// The blocks that `task` reads or writes, each once.
[[nodiscard]] std::vector<DataId> operands(const Task& task);

}  // namespace spillway::prefetch
