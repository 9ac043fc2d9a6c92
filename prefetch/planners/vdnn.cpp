#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/moves/saved_blocks.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/moves/swap_planner.h"
#include "prefetch/planners/strategies.h"

namespace spillway::prefetch {
namespace {

// Which layers' inputs vDNN offloads.
enum class VdnnPolicy { kNone, kConvolutions, kAll };

bool is_convolution(const TaskGraph& graph, const TaskRun& run) {
  return graph[run.task].kind == TaskKind::kConvolution;
}

// Returns the swaps. If the link copies while tasks read, an offload may start with the layer
// itself: after the previous run, even if the block was written long before.
std::vector<Swap> offloaded(const TaskGraph& graph, std::span<const FarInterval> saved,
                            VdnnPolicy policy) {
  std::vector<bool> of_convolution(graph.data.size(), false);  // read by a forward one
  for (const Task& task : graph.tasks) {
    if (task.phase != Phase::kForward || task.kind != TaskKind::kConvolution) continue;
    for (const DataId id : task.reads) of_convolution[static_cast<std::size_t>(id)] = true;
  }
  std::vector<Swap> swaps;
  for (const FarInterval& block : saved) {
    const bool is_chosen =
        policy == VdnnPolicy::kAll || (policy == VdnnPolicy::kConvolutions &&
                                       of_convolution[static_cast<std::size_t>(block.data)]);
    const bool is_used_at_once = block.next == block.last + 1;
    if (!is_chosen || !block.follows_a_read() || is_used_at_once) continue;
    swaps.push_back({block, block.next});
    if (block.last > 0) swaps.back().written = std::max(block.written, block.last - 1);
  }
  return swaps;
}

// Walks the backward pass layer by layer and sets the end of each swap.
class PrefetchSearch {
 public:
  PrefetchSearch(const TaskGraph& graph, std::span<const TaskRun> runs, std::span<Swap> swaps)
      : graph_{graph},
        runs_{runs},
        swaps_{swaps},
        of_layer_(runs.size()),
        of_use_(runs.size()),
        is_back_(swaps.size(), false) {
    for (std::size_t i = 0; i < swaps.size(); ++i) {
      of_layer_[swaps[i].last].push_back(i);
      of_use_[swaps[i].next].push_back(i);
    }
  }

  void enter(const BackwardLayer& layer) {
    for (Position p = layer.begin; p < layer.end; ++p) {
      for (const std::size_t i : of_use_[p]) is_back_[i] = true;  // late ones: on demand
    }
    for (Position p = layer.layer; p-- > 0;) {
      if (is_pending(p)) {
        prefetch(p, layer);
        return;
      }
      if (is_convolution(graph_, runs_[p])) return;
    }
  }

 private:
  [[nodiscard]] bool is_pending(Position layer) const {
    return std::ranges::any_of(of_layer_[layer], [&](std::size_t i) { return !is_back_[i]; });
  }

  void prefetch(Position preceding, const BackwardLayer& layer) {
    for (const std::size_t i : of_layer_[preceding]) {
      if (is_back_[i]) continue;
      is_back_[i] = true;
      swaps_[i].back = layer.begin;
      swaps_[i].next = layer.end;  // synchronous: the next layer waits
    }
  }

  const TaskGraph& graph_;
  std::span<const TaskRun> runs_;
  std::span<Swap> swaps_;
  std::vector<std::vector<std::size_t>> of_layer_;  // by forward run: swaps of its inputs
  std::vector<std::vector<std::size_t>> of_use_;    // by backward run: swaps of its operands
  std::vector<bool> is_back_;
};

// Returns by swap the second layer of the policy after its last use.
std::vector<Position> overlapped(const TaskGraph& graph, std::span<const TaskRun> runs,
                                 std::span<const Swap> swaps, VdnnPolicy policy) {
  std::vector<Position> limits;
  for (const Swap& swap : swaps) {
    Position next = swap.last + 1;
    if (policy == VdnnPolicy::kConvolutions) {
      while (next < runs.size() && graph[runs[next].task].phase == Phase::kForward &&
             !is_convolution(graph, runs[next])) {
        ++next;
      }
    }
    limits.push_back(next + 1);
  }
  return limits;
}

// vDNN's rules for one problem, which must outlive it (Rhu et al., MICRO 2016, section III).
//
// - A layer's input X leaves after the last forward task that reads it (reference count). vdnn-conv
//   takes the inputs of convolutions, vdnn-all every block. An input that the very next task uses
//   again stays.
// - Layer-synchronous forward: X is offloaded while its layer reads it, and the next task waits for
//   that. If a link cannot copy what tasks read (LinkProfile::copies_while_read), the offload
//   starts when X's layer has ended and overlaps the policy's next layer. The task after that
//   waits, but only as far as memory allows: the need is that of the paper's rule.
// - Layer-synchronous backward: when a layer's backward pass starts, the nearest preceding layer
//   with an offloaded X that is not yet prefetched is prefetched. The search stops at a convolution
//   (its Figure 10), and the next layer's backward pass waits for the prefetch. Other blocks return
//   on demand.
// - Algorithms are memory-optimal (the first), performance-optimal (the fastest), or chosen
//   greedily: the fastest that fits beside the near blocks at its task.
//
// vDNN manages the layers before the classifier; here the classifier's inputs, which are small, are
// treated like all others. Whole blocks; nothing is recomputed.
class VdnnRules {
 public:
  VdnnRules(const Problem& problem, VdnnPolicy policy);

  // Return nullopt when the rules cannot keep the budget with such algorithms.
  [[nodiscard]] std::optional<Plan> performance_optimal() const;
  [[nodiscard]] std::optional<Plan> greedy() const;
  [[nodiscard]] std::optional<Plan> memory_optimal() const;

  // Plans a static policy: with performance-optimal algorithms if these keep the budget, otherwise
  // with memory-optimal ones.
  [[nodiscard]] std::variant<Plan, Infeasible> plan_statically() const;

  // Returns the smallest budget for the rules, with memory-optimal algorithms.
  [[nodiscard]] Infeasible infeasible() const { return planner_.infeasible(swaps_); }

 private:
  [[nodiscard]] std::optional<Plan> plan(std::vector<TaskRun> runs) const;

  SwapPlanner planner_;
  bool copies_while_read_;
  std::vector<Swap> swaps_;
  std::vector<Position> overlapped_;  // by swap: the latest run that waits for its offload
};

VdnnRules::VdnnRules(const Problem& problem, VdnnPolicy policy)
    : planner_{problem}, copies_while_read_{problem.profile.link.copies_while_read} {
  const std::vector<TaskRun>& runs = planner_.frugal();
  const auto saved = find_saved_blocks(problem.graph, planner_.block_sizes(), runs);
  swaps_ = offloaded(problem.graph, saved, policy);
  PrefetchSearch search{problem.graph, runs, swaps_};
  for (const BackwardLayer& layer : find_backward_layers(problem.graph, runs, saved)) {
    search.enter(layer);
  }
  overlapped_ = overlapped(problem.graph, runs, swaps_, policy);
}

std::optional<Plan> VdnnRules::performance_optimal() const { return plan(planner_.fastest()); }

std::optional<Plan> VdnnRules::greedy() const { return plan(planner_.fastest_beside(swaps_)); }

std::optional<Plan> VdnnRules::memory_optimal() const { return plan(planner_.frugal()); }

std::optional<Plan> VdnnRules::plan(std::vector<TaskRun> runs) const {
  if (!planner_.keeps_budget(runs, swaps_)) return std::nullopt;
  std::vector<Swap> swaps = swaps_;
  if (!copies_while_read_) planner_.leave_late(runs, overlapped_, swaps);
  return planner_.plan(std::move(runs), std::move(swaps));
}

std::variant<Plan, Infeasible> VdnnRules::plan_statically() const {
  std::optional<Plan> plan = performance_optimal();
  if (!plan) plan = memory_optimal();
  if (!plan) return infeasible();
  return *std::move(plan);
}

}  // namespace

std::variant<Plan, Infeasible> plan_vdnn_all(const Problem& problem) {
  return VdnnRules{problem, VdnnPolicy::kAll}.plan_statically();
}

std::variant<Plan, Infeasible> plan_vdnn_conv(const Problem& problem) {
  return VdnnRules{problem, VdnnPolicy::kConvolutions}.plan_statically();
}

std::variant<Plan, Infeasible> plan_vdnn_dyn(const Problem& problem) {
  const VdnnRules none{problem, VdnnPolicy::kNone};
  const VdnnRules convolutions{problem, VdnnPolicy::kConvolutions};
  const VdnnRules all{problem, VdnnPolicy::kAll};
  std::optional<Plan> plan = none.performance_optimal();
  if (!plan) plan = convolutions.performance_optimal();
  if (!plan) plan = all.performance_optimal();
  if (!plan) plan = convolutions.greedy();
  if (!plan) plan = all.greedy();
  if (plan) return *std::move(plan);
  const Infeasible by_convolutions = convolutions.infeasible();
  const Infeasible by_all = all.infeasible();
  return by_convolutions.smallest_budget < by_all.smallest_budget ? by_convolutions : by_all;
}

}  // namespace spillway::prefetch
