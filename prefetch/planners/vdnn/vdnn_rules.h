#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "prefetch/moves/saved_blocks.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/moves/swap_planner.h"
#include "prefetch/planner.h"

namespace spillway::prefetch {

/// Which layers' inputs vDNN offloads.
enum class VdnnPolicy { kNone, kConvolutions, kAll };

/// The rules of vDNN for one problem, which must outlive it (Rhu et al., MICRO 2016, section III;
/// the article of papers/vdnn-article.txt, "Optimization Strategy" and "A Memory Manager CUDA
/// Stream").
///
/// - A layer's input X leaves after the last forward task that reads it (reference count).
///   vdnn-conv takes the blocks that some convolution reads, vdnn-all every block. An input that
///   the very next task uses again stays.
/// - Layer-synchronous forward: X is offloaded while its layer reads it, and the next task waits
///   for that. Where a link cannot copy what tasks read (LinkProfile::copies_while_read), the
///   offload starts when X's layer has ended; it then overlaps the next layer of the policy
///   instead, and the task after that waits, but only as far as memory allows: its need is that of
///   the paper's rule.
/// - Layer-synchronous backward: when a layer's backward pass starts, the nearest preceding layer
///   whose X is offloaded and not yet prefetched is prefetched; the search does not go past a
///   convolution (its Figure 10), and the next layer's backward pass waits for it. What is needed
///   and was not prefetched comes back on demand.
/// - Algorithms are memory-optimal (the first), performance-optimal (the fastest), or greedily
///   chosen: the fastest that fits beside what is near at its task.
///
/// vDNN manages the layers before the classifier; the classifier's inputs are small, and here they
/// are treated like all others. Whole blocks; nothing is recomputed.
class VdnnRules {
 public:
  VdnnRules(const Problem& problem, VdnnPolicy policy);

  /// Nothing when the rules cannot keep the budget with such algorithms.
  [[nodiscard]] std::optional<Plan> performance_optimal() const;
  [[nodiscard]] std::optional<Plan> greedy() const;
  [[nodiscard]] std::optional<Plan> memory_optimal() const;

  /// The static policies: performance-optimal algorithms where the rules keep the budget with them,
  /// else memory-optimal ones.
  [[nodiscard]] std::variant<Plan, Infeasible> plan_statically(std::string_view planner) const;

  /// The smallest budget that the rules keep: with memory-optimal algorithms.
  [[nodiscard]] Infeasible infeasible() const { return planner_.infeasible(swaps_); }

 private:
  [[nodiscard]] std::optional<Plan> plan(std::vector<TaskRun> runs) const;

  SwapPlanner planner_;
  bool copies_while_read_;
  std::vector<Swap> swaps_;
  std::vector<Position> overlapped_;  // by trip: the run that waits for its offload at the latest
};

}  // namespace spillway::prefetch
