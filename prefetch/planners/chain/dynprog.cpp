#include "prefetch/planners/chain/dynprog.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/cover.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/saved_blocks.h"
#include "prefetch/moves/schedule.h"
#include "prefetch/planner.h"
#include "prefetch/planners/chain/chain.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// The no-wait, ordered schedules of Beaumont et al. (sections 3.2 and 4) for one sequence of runs.
// The chosen saved blocks go far as a whole. They leave in the order of their last forward use and
// return in the order in which the backward pass reads them; on a chain, the first produced leaves
// first and returns last. Each run waits only for the offloads that make its room; each prefetch
// starts when every run from then on has room for it.
//
// As in the paper, a block may be copied out while the last forward task still reads it, if the
// link allows that (LinkProfile::copies_while_read). A chosen block stays if no run needs its
// room: moving it could only cost time.
class OrderedOffload {
 public:
  // `runs`: every task once, in order; `problem` must outlive this.
  OrderedOffload(const Problem& problem, std::vector<TaskRun> runs);

  // Returns the blocks that may go far, in order of production.
  [[nodiscard]] const std::vector<IdleInterval>& saved() const { return saved_; }

  // Returns the plan that offloads the saved blocks with a set flag; nullopt when some run does
  // not fit. Requires: `chosen` has a flag for each saved block.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(const std::vector<bool>& chosen) const;

  // Returns `chosen` plus the fewest further blocks, in order of production, that make every run
  // fit; nullopt when even all saved blocks do not make enough room.
  [[nodiscard]] std::optional<std::vector<bool>> extended(std::vector<bool> chosen) const;

  // Returns the least budget for these runs with all saved blocks far, and the task that decides
  // it.
  [[nodiscard]] Infeasible smallest_budget() const;

 private:
  [[nodiscard]] std::vector<FarInterval> far_intervals(const std::vector<bool>& chosen) const;
  [[nodiscard]] bool fits(const std::vector<bool>& chosen) const;
  [[nodiscard]] std::vector<um::Bytes> demand_without(const std::vector<bool>& chosen) const;

  const Problem& problem_;
  BlockSizes block_sizes_;
  um::Bytes pool_;
  std::vector<TaskRun> runs_;
  std::vector<um::Bytes> demand_;
  std::vector<IdleInterval> saved_;
};

OrderedOffload::OrderedOffload(const Problem& problem, std::vector<TaskRun> runs)
    : problem_{problem},
      block_sizes_{problem.graph, problem.page},
      pool_{block_sizes_.pool(problem.budget)},
      runs_{std::move(runs)} {
  const std::vector<Life> lives = find_lives(problem.graph, runs_);
  demand_ = demand(problem.graph, block_sizes_, runs_, lives);
  saved_ = find_activations(problem.graph, block_sizes_, lives);
}

std::vector<Bytes> OrderedOffload::demand_without(const std::vector<bool>& chosen) const {
  std::vector<Swap> swaps;
  for (std::size_t i = 0; i < saved_.size(); ++i) {
    if (!chosen[i]) continue;
    const FarInterval away{saved_[i], {}, block_sizes_.size(saved_[i].data), saved_[i].last + 1};
    swaps.push_back({away, away.next});
  }
  return near_during(swaps, demand_);
}

bool OrderedOffload::fits(const std::vector<bool>& chosen) const {
  return block_sizes_.pinned() <= problem_.budget &&
         std::ranges::all_of(demand_without(chosen), [&](Bytes size) { return size <= pool_; });
}

std::optional<std::vector<bool>> OrderedOffload::extended(std::vector<bool> chosen) const {
  const auto with = [&](std::size_t further) {
    std::vector<bool> result = chosen;
    for (std::size_t i = 0; i < result.size() && further > 0; ++i) {
      if (result[i]) continue;
      result[i] = true;
      --further;
    }
    return result;
  };
  std::size_t enough = saved_.size();
  if (!fits(with(enough))) return std::nullopt;
  for (std::size_t low = 0; low < enough;) {  // more far blocks never need more near memory: bisect
    const std::size_t middle = low + (enough - low) / 2;
    if (fits(with(middle))) {
      enough = middle;
    } else {
      low = middle + 1;
    }
  }
  return with(enough);
}

// Each run that exceeds near memory waits for the next blocks in the queue.
std::vector<FarInterval> OrderedOffload::far_intervals(const std::vector<bool>& chosen) const {
  std::vector<IdleInterval> queue;  // in order of leaving: the forward pass is done with them
  for (std::size_t i = 0; i < saved_.size(); ++i) {
    if (chosen[i]) queue.push_back(saved_[i]);
  }
  std::ranges::stable_sort(queue, {}, &IdleInterval::last);
  std::vector<FarInterval> result;
  std::vector<Bytes> come_back(demand_.size() + 1);
  std::size_t front = 0;
  Bytes away;
  for (Position p = 0; p < demand_.size(); ++p) {
    away -= come_back[p];
    for (; demand_[p] > pool_ + away; ++front) {
      const IdleInterval& block = queue[front];
      if (block.next <= p) continue;  // back without being missed
      const Bytes size = block_sizes_.size(block.data);
      result.push_back({block, {}, size, p});
      away += size;
      come_back[block.next] += size;
    }
  }
  return result;
}

std::optional<EvaluatedPlan> OrderedOffload::plan(const std::vector<bool>& chosen) const {
  um::expects(chosen.size() == saved_.size(), "a choice for each saved block");
  if (!fits(chosen)) return std::nullopt;
  Plan plan = empty_plan(problem_, runs_);
  add_moves(return_early(far_intervals(chosen), demand_, pool_), problem_.profile.link, plan);
  return evaluated(problem_, std::move(plan));
}

Infeasible OrderedOffload::smallest_budget() const {
  return need_max(block_sizes_, runs_, demand_without(std::vector<bool>(saved_.size(), true)));
}

// Returns the answer of a planner that only offloads saved blocks when no plan fits: the least
// budget with each task's first algorithm, which needs least.
Infeasible infeasible_for_activations(const Problem& problem) {
  return OrderedOffload{problem, runs_in_order(problem.graph)}.smallest_budget();
}

double positive(double value) { return std::max(0.0, value); }

// A stage in the paper's terms: F_i needs x_i, x_{i+1} and ex^F_i; B_i also y_i, y_{i+1}, ex^B_i.
struct ChainLayer {
  double forward_time;
  double backward_time;
  double x;               // |x_i|
  double next_x;          // |x_{i+1}|
  double y;               // |y_i|
  double next_y;          // |y_{i+1}|
  double forward_extra;   // ex^F_i
  double backward_extra;  // ex^B_i
};

std::vector<ChainLayer> layers_of(const Chain& chain) {
  std::vector<ChainLayer> layers;
  double x = to_double(chain.input);
  double y = to_double(chain.input_gradient);
  double unsaved_input = 0;
  for (const ChainStage& stage : chain.stages) {
    const double unsaved = to_double(stage.kept - stage.saved);
    layers.push_back({.forward_time = um::seconds(stage.forward_time),
                      .backward_time = um::seconds(stage.backward_time),
                      .x = x,
                      .next_x = to_double(stage.saved),
                      .y = y,
                      .next_y = to_double(stage.gradient),
                      .forward_extra = to_double(stage.forward_extra) + unsaved + unsaved_input,
                      .backward_extra = to_double(stage.backward_extra) + unsaved});
    x = layers.back().next_x;
    y = layers.back().next_y;
    unsaved_input = unsaved;
  }
  return layers;
}

// The best schedule for given M_{F_i}, Delta_{F_i} and Delta_{B_i}. M_{F_i} is stored as the part
// that Eqs. 3 and 5 keep exact.
struct State {
  double kept;      // |x_i| and all earlier tensors that are not offloaded: whole bytes, so exact
  double forward;   // Delta_{F_i}, in bytes
  double backward;  // Delta_{B_i}, in bytes
  double idle;
  double moved;        // bytes offloaded
  std::size_t parent;  // among the states of stage i - 1
  bool offloads;       // whether x_{i-1} is offloaded

  [[nodiscard]] double memory() const { return kept + positive(forward); }  // M_{F_i}
};

using CellKey = std::array<std::int64_t, 3>;

class Algorithm1 {
 public:
  Algorithm1(const Chain& chain, um::Bytes memory, const LinkProfile& link,
             const ChainOffloadOptions& options)
      : layers_{layers_of(chain)},
        memory_{to_double(memory)},
        out_{link.offload.bytes_per_second()},
        in_{link.prefetch.bytes_per_second()},
        options_{options} {
    double saved = layers_.front().x;
    for (const ChainLayer& layer : layers_) {
      saved += layer.next_x;
      const double extra = layer.forward_extra + layer.backward_extra + layer.y + layer.next_y;
      max_ = std::max(max_, saved + extra);
    }
  }

  std::optional<ChainOffload> solve() {
    tables_.push_back({State{.kept = layers_.front().x,
                             .forward = 0,
                             .backward = 0,
                             .idle = 0,
                             .moved = 0,
                             .parent = 0,
                             .offloads = false}});
    for (const ChainLayer& layer : layers_) {
      std::vector<State> next;
      for (std::size_t i = 0; i < tables_.back().size(); ++i) extend(layer, i, next);
      tables_.push_back(rounded(std::move(next)));
    }
    return backtrack();
  }

 private:
  void extend(const ChainLayer& layer, std::size_t index, std::vector<State>& next) const {
    const State& state = tables_.back()[index];
    const double backward_memory = layer.y + positive(state.backward) + state.kept;  // M_{B_i}
    const double forward_need = layer.next_x + layer.forward_extra;
    const double backward_need = layer.next_x + layer.next_y + layer.backward_extra;
    if (state.kept + std::max(forward_need, layer.y + backward_need) > memory_) return;
    const double wait = positive(state.memory() + forward_need - memory_) / out_;  // Eq. 1
    const double backward_wait =
        positive(backward_memory + backward_need - memory_) / in_;  // Eq. 6
    const double sent = (wait + layer.forward_time) * out_;
    const double received = (backward_wait + layer.backward_time) * in_;
    for (const bool offloads : {false, true}) {
      const double x = offloads ? layer.x : 0;
      const double waiting = positive(state.forward) + x;
      State result{.kept = state.kept - x + layer.next_x,                          // Eqs. 3, 5
                   .forward = (offloads ? waiting : state.forward) - sent,         // Eqs. 2, 4
                   .backward = offloads ? x + positive(state.backward - received)  // Eq. 7
                                        : state.backward - received,               // Eq. 8
                   .idle = state.idle + wait + backward_wait,
                   .moved = state.moved + x,
                   .parent = index,
                   .offloads = offloads};
      result.forward = std::max(result.forward, -max_);
      result.backward = std::max(result.backward, -max_);
      next.push_back(result);
    }
  }

  [[nodiscard]] std::vector<State> rounded(std::vector<State> states) const {
    for (double grid = std::max(1.0, memory_ / static_cast<double>(options_.grid_cells));;
         grid *= 2) {
      std::vector<std::pair<CellKey, State>> keyed;
      keyed.reserve(states.size());
      for (const State& state : states) keyed.emplace_back(cell(state, grid), state);
      std::ranges::stable_sort(keyed, {}, [](const auto& entry) {
        return std::tuple{entry.first, entry.second.idle, entry.second.moved};
      });
      const auto same_cell = [](const auto& a, const auto& b) { return a.first == b.first; };
      keyed.erase(std::unique(keyed.begin(), keyed.end(), same_cell), keyed.end());
      states.clear();
      for (const auto& entry : keyed) states.push_back(entry.second);
      if (states.size() <= options_.entries) return states;
    }
  }

  static CellKey cell(const State& state, double grid) {
    const auto index = [&](double value) {
      return static_cast<std::int64_t>(std::floor(value / grid));
    };
    return {index(state.kept), index(state.forward), index(state.backward)};
  }

  // epsilon_G, Eq. 9.
  [[nodiscard]] double idle_between(const State& state) const {
    const double backward_memory = layers_.back().next_y + state.kept + positive(state.backward);
    double idle = positive(state.forward / out_ + state.backward / in_);
    double forward_time = 0;  // of the stages after j
    double backward_time = 0;
    double freed = 0;  // of x_i, i > j + 1
    for (std::size_t j = layers_.size(); j-- > 0;) {
      const ChainLayer& layer = layers_[j];
      if (backward_time * in_ < -state.backward) {
        const double need = layer.backward_extra + layer.y + layer.next_y - freed;
        idle = std::max(idle, (need + state.memory() - memory_) / out_ - backward_time);
      }
      if (forward_time * out_ < -state.forward) {
        const double need = layer.forward_extra - freed;
        idle = std::max(idle, (need + backward_memory - memory_) / in_ - forward_time);
      }
      forward_time += layer.forward_time;
      backward_time += layer.backward_time;
      freed += layer.next_x;
    }
    return idle;
  }

  [[nodiscard]] std::optional<ChainOffload> backtrack() const {
    const std::vector<State>& last = tables_.back();
    if (last.empty()) return std::nullopt;
    const auto total_idle = [&](const State& state) {
      return std::pair{state.idle + idle_between(state), state.moved};
    };
    const auto best = std::ranges::min_element(last, {}, total_idle);
    ChainOffload result{.offloaded = std::vector<bool>(layers_.size()),
                        .idle_seconds = total_idle(*best).first};
    auto index = static_cast<std::size_t>(best - last.begin());
    for (std::size_t i = layers_.size(); i > 0; --i) {
      const State& state = tables_[i][index];
      result.offloaded[i - 1] = state.offloads;
      index = state.parent;
    }
    return result;
  }

  std::vector<ChainLayer> layers_;
  double memory_;
  double out_;  // bytes per second
  double in_;
  ChainOffloadOptions options_;
  double max_ = 0;  // bytes: at least M_peak
  std::vector<std::vector<State>> tables_;
};

// Returns flags for the saved blocks of the offloaded x_i: those that stage i - 1 produces.
std::vector<bool> choose(const Problem& problem, const std::vector<TaskRun>& runs,
                         const std::vector<IdleInterval>& saved) {
  constexpr std::size_t kStages = 4096;
  const BlockSizes block_sizes{problem.graph, problem.page};
  const Chain chain = linearise(problem.graph, problem.profile, block_sizes, runs, kStages);
  const auto best =
      best_chain_offload(chain, block_sizes.pool(problem.budget), problem.profile.link);
  std::vector<bool> chosen(saved.size(), false);
  if (!best) return chosen;
  std::size_t stage = 0;  // saved blocks are in order of production
  for (std::size_t i = 0; i < saved.size(); ++i) {
    while (chain.stages[stage].forward.end <= saved[i].begin) ++stage;
    chosen[i] = stage + 1 < chain.stages.size() && best->offloaded[stage + 1];
  }
  return chosen;
}

}  // namespace

std::optional<ChainOffload> best_chain_offload(const Chain& chain, um::Bytes memory,
                                               const LinkProfile& link,
                                               const ChainOffloadOptions& options) {
  um::expects(!chain.stages.empty(), "a chain has a stage at least");
  um::expects(options.entries > 0 && options.grid_cells > 0, "room for one state at least");
  return Algorithm1{chain, memory, link, options}.solve();
}

std::variant<Plan, Infeasible> plan_dynprog(const Problem& problem) {
  constexpr int kEvaluations = 2;
  const auto offload_chosen =
      [&](const std::vector<TaskRun>& runs) -> std::optional<EvaluatedPlan> {
    const OrderedOffload offload{problem, runs};
    const auto chosen = offload.extended(choose(problem, runs, offload.saved()));
    return chosen ? offload.plan(*chosen) : std::nullopt;
  };
  auto best = choose_algorithms(problem, offload_chosen, kEvaluations);
  if (!best) return infeasible_for_activations(problem);
  return std::move(best->plan);
}

std::variant<Plan, Infeasible> plan_greedy(const Problem& problem) {
  constexpr int kEvaluations = 64;
  const auto offload_the_first = [&](std::vector<TaskRun> runs) -> std::optional<EvaluatedPlan> {
    const OrderedOffload offload{problem, std::move(runs)};
    const auto chosen = offload.extended(std::vector<bool>(offload.saved().size(), false));
    return chosen ? offload.plan(*chosen) : std::nullopt;
  };
  auto best = choose_algorithms(problem, offload_the_first, kEvaluations);
  if (!best) return infeasible_for_activations(problem);
  return std::move(best->plan);
}

}  // namespace spillway::prefetch
