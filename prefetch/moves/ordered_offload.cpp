#include "prefetch/moves/ordered_offload.h"

#include <algorithm>
#include <utility>

#include "prefetch/moves/cover.h"
#include "prefetch/moves/schedule.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Returns the leaving blocks; the one that the forward pass is done with first comes first.
std::vector<IdleInterval> in_order_of_leaving(const std::vector<IdleInterval>& saved,
                                              const std::vector<bool>& chosen) {
  std::vector<IdleInterval> queue;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    if (chosen[i]) queue.push_back(saved[i]);
  }
  std::ranges::stable_sort(queue, {}, &IdleInterval::last);
  return queue;
}

}  // namespace

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
  const std::vector<IdleInterval> queue = in_order_of_leaving(saved_, chosen);
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

Infeasible infeasible_for_activations(const Problem& problem) {
  return OrderedOffload{problem, runs_in_order(problem.graph)}.smallest_budget();
}

}  // namespace spillway::prefetch
