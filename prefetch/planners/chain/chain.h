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

/// Tasks that follow one another: from the first up to, and without, `end`.
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
  um::Bytes saved;     ///< what F_i writes and the backward pass reads, its output included if so
  um::Bytes kept;      ///< the same, its output always included: what F_all leaves (RR-9302)
  um::Bytes gradient;  ///< |y_{i+1}|: what lives between B_{i+1} and B_i beside saved blocks
  um::Bytes forward_extra;      ///< ex^F_i: what F_i needs beside x_i and `kept` when it saves
  um::Bytes passing_extra;      ///< what F_i needs beside x_i and `output` when it saves nothing
  um::Bytes backward_extra;     ///< ex^B_i: what B_i needs beside x_i, `kept`, y_{i+1} and y_i
  bool is_recomputable = true;  ///< all tasks of F_i may run again
  TaskRange forward;            ///< its tasks; empty in a chain that no graph gave
  TaskRange backward;
};

/// A training step as a chain of stages, executed F_0 ... F_L, B_L ... B_0.
struct Chain {
  std::vector<ChainStage> stages;
  um::Bytes input;           ///< |x_0|: near before F_0
  um::Bytes input_gradient;  ///< |y_0|
};

/// The chain of a step that runs every task once, in order. Each non-linear part of the graph is a
/// virtual layer (Beaumont et al., section 6, which says no more): the forward pass is cut
/// - where exactly one movable tensor lives on for later forward tasks, the stage's output, which
///   they do not update in place,
/// - and where the backward tasks up to the last that reads what was written after the cut read
///   nothing else that was written before it.
/// A backward task belongs to the latest stage whose blocks it or a later task reads. There is no
/// x_0: the first stage makes the batch.
///
/// Where that gives more than `most` stages, the two neighbours whose forward passes take least
/// together become one, again and again.
///
/// Requires: `most` > 0; `runs` is every task once, in order.
/// Complexity: O(accesses + cuts^2).
[[nodiscard]] Chain linearise(const TaskGraph& graph, const Profile& profile,
                              const BlockSizes& block_sizes, const std::vector<TaskRun>& runs,
                              std::size_t max);

/// How the two passes use a tensor that the forward pass makes.
struct ForwardLife {
  um::Bytes size;                   ///< in whole pages; zero when it is always near
  Position begin = 0;               ///< the run that begins it
  Position last_forward = 0;        ///< the last run of the forward pass that uses it
  Position last_forward_write = 0;  ///< the last run of the forward pass that writes it
  Position first_backward = 0;      ///< the first run after it that does; all runs when none
  Position last = 0;                ///< the last run that uses it
};

/// Those of `lives`, of a sequence of `runs` runs, that begin in the forward pass, in order.
[[nodiscard]] std::vector<ForwardLife> find_forward_lives(const BlockSizes& block_sizes,
                                                          Position forward_end, Position runs,
                                                          const std::vector<Life>& lives);

/// Where the forward pass can be cut into a chain (see linearise()): the ends of the pieces, the
/// last of which is `forward_end`.
/// Complexity: O(lives * log tasks + tasks).
[[nodiscard]] std::vector<Position> find_chain_cuts(const std::vector<ForwardLife>& lives,
                                                    Position forward_end);

}  // namespace spillway::prefetch
