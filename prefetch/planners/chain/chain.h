#pragma once

#include <cstddef>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/plan.h"
#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Consecutive tasks [begin, end).
struct TaskRange {
  Position begin = 0;
  Position end = 0;
};

/// One stage of a chain: F_i, which reads x_i and writes x_{i+1}, and B_i, which reads x_i, x_{i+1}
/// and y_{i+1} and writes y_i (Beaumont et al., section 3.1).
struct ChainStage {
  um::Nanoseconds forward_time{0};   ///< of F_i
  um::Nanoseconds backward_time{0};  ///< of B_i
  um::Bytes output;                  ///< |x_{i+1}|: the one tensor that F_{i+1} reads
  um::Bytes saved;     ///< F_i's writes that the backward pass reads, including the output if read
  um::Bytes kept;      ///< `saved` plus the output in any case: what F_all leaves (RR-9302)
  um::Bytes gradient;  ///< |y_{i+1}|: live between B_{i+1} and B_i beside saved blocks
  um::Bytes forward_extra;      ///< ex^F_i: needed by F_i beside x_i and `kept` when it saves
  um::Bytes passing_extra;      ///< needed by F_i beside x_i and `output` when it saves nothing
  um::Bytes backward_extra;     ///< ex^B_i: needed by B_i beside x_i, `kept`, y_{i+1} and y_i
  bool is_recomputable = true;  ///< all tasks of F_i may run again
  TaskRange forward;            ///< its tasks; empty in a chain without a graph
  TaskRange backward;
};

/// A training step as a chain of stages, executed F_0 ... F_L, B_L ... B_0.
struct Chain {
  std::vector<ChainStage> stages;
  um::Bytes input;           ///< |x_0|: near before F_0
  um::Bytes input_gradient;  ///< |y_0|
};

/// Returns the chain of a step that runs every task once, in order. Each non-linear part of the
/// graph is a virtual layer (Beaumont et al., section 6, without details). The forward pass is cut
/// - if exactly one movable tensor lives on for later forward tasks (the stage's output), which do
///   not update it in place,
/// - and if the backward tasks, until the last read of blocks written after the cut, read no other
///   block written before it.
/// A backward task belongs to the latest stage with blocks that it or a later task reads. x_0 is
/// absent: the first stage makes the batch.
///
/// If there are more than `max` stages, repeatedly joins the two neighbours with the shortest total
/// forward time.
///
/// Requires: `max` > 0; `runs` is every task once, in order.
/// Complexity: O(accesses + cuts^2).
[[nodiscard]] Chain linearise(const TaskGraph& graph, const Profile& profile,
                              const BlockSizes& block_sizes, const std::vector<TaskRun>& runs,
                              std::size_t max);

/// The use of a tensor that the forward pass makes by the two passes.
struct ForwardLife {
  um::Bytes size;                   ///< in whole pages; zero when it is always near
  Position begin = 0;               ///< the run that begins it
  Position last_forward = 0;        ///< the last run of the forward pass that uses it
  Position last_forward_write = 0;  ///< the last run of the forward pass that writes it
  Position first_backward = 0;  ///< the first run after it that uses it; the number of runs if none
  Position last = 0;            ///< the last run that uses it
};

/// Returns those of `lives`, with `runs` runs, that begin in the forward pass, in order.
[[nodiscard]] std::vector<ForwardLife> find_forward_lives(const BlockSizes& block_sizes,
                                                          Position forward_end, Position runs,
                                                          const std::vector<Life>& lives);

/// Returns the cuts of the forward pass for a chain (see linearise()): the ends of the pieces, the
/// last one `forward_end`.
/// Complexity: O(lives * log tasks + tasks).
[[nodiscard]] std::vector<Position> find_chain_cuts(const std::vector<ForwardLife>& lives,
                                                    Position forward_end);

}  // namespace spillway::prefetch
