#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/planners/joint/decisions.h"
#include "prefetch/planners/strategies.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// A policy for each droppable block, and the resulting need.
struct Choice {
  std::vector<RetentionPolicy> policies;
  std::vector<TaskRun> runs;
  um::Nanoseconds time{0};
  Bytes peak;                 // of movable blocks
  std::size_t peak_runs = 0;  // runs with this peak
  Position peak_at = 0;       // the first of these
};

bool needs_less(const Choice& a, const Choice& b) {
  return std::pair{a.peak, a.peak_runs} < std::pair{b.peak, b.peak_runs};
}

class Search {
 public:
  explicit Search(const Problem& problem)
      : problem_{problem},
        block_sizes_{problem.graph, problem.page},
        inserter_{problem.graph},
        in_order_{runs_in_order(problem.graph)},
        order_{problem.may_recompute
                   ? find_recomputable(problem.graph, problem.profile, problem.page, in_order_)
                   : std::vector<Recomputable>{}},
        min_{evaluate(std::vector<RetentionPolicy>(order_.size(), RetentionPolicy::kKeep),
                      in_order_)} {}

  // Returns runs that fit, or the sequence that needs least.
  Choice find() {
    if (fits(min_)) return min_;
    auto best = best_prefix();
    if (!best) best = descend();
    return best ? keep_what_fits(*std::move(best)) : min_;
  }

  [[nodiscard]] bool fits(const Choice& choice) const {
    return block_sizes_.pinned() + choice.peak <= problem_.budget;
  }

 private:
  // Returns nullopt if the sequence is too long, or exceeds the search's remaining runs.
  [[nodiscard]] std::optional<Choice> try_out(std::vector<RetentionPolicy> policies) {
    constexpr std::size_t kLongest = std::size_t{1}
                                     << 17U;  // and 8 times the tasks of longer steps
    const std::size_t longest = std::max(kLongest, 8 * in_order_.size());
    auto runs = inserter_.insert_within(std::min(longest, runs_left_), in_order_,
                                        dropped_blocks(order_, policies));
    if (!runs) return std::nullopt;
    runs_left_ -= runs->size();
    return evaluate(std::move(policies), *std::move(runs));
  }

  [[nodiscard]] Choice evaluate(std::vector<RetentionPolicy> policies,
                                std::vector<TaskRun> runs) const {
    Choice choice{.policies = std::move(policies), .runs = std::move(runs)};
    choice.time = compute_time(problem_.profile, choice.runs);
    const std::vector<Life> lives = find_lives(problem_.graph, choice.runs);
    const std::vector<Bytes> live = demand(problem_.graph, block_sizes_, choice.runs, lives);
    const auto max = std::ranges::max_element(live);
    if (max == live.end()) return choice;
    choice.peak = *max;
    choice.peak_at = static_cast<Position>(max - live.begin());
    choice.peak_runs = static_cast<std::size_t>(std::ranges::count(live, *max));
    return choice;
  }

  std::optional<Choice> best_prefix() {
    constexpr std::size_t kGrid = 32;
    std::optional<Choice> best;
    for (const RetentionPolicy policy : {RetentionPolicy::kDrop, RetentionPolicy::kDropPerUse}) {
      std::size_t previous = 0;
      for (std::size_t i = 1; i <= kGrid; ++i) {
        const std::size_t count = order_.size() * i / kGrid;
        if (std::exchange(previous, count) == count) continue;
        std::vector<RetentionPolicy> policies(order_.size(), RetentionPolicy::kKeep);
        std::fill_n(policies.begin(), count, policy);
        auto choice = try_out(std::move(policies));
        if (!choice) break;  // more dropped blocks take more runs
        if (needs_less(*choice, min_)) min_ = *choice;
        if (fits(*choice) && (!best || choice->time < best->time)) best = *std::move(choice);
      }
    }
    return best;
  }

  // Lowers the peak from the choice that needs least, until it fits.
  std::optional<Choice> descend() {
    evaluations_left_ = 512;
    while (!fits(min_)) {
      if (!lower_peak()) return std::nullopt;
    }
    return min_;
  }

  // Applies the first change of a policy, among blocks live at the peak, that lowers the need.
  bool lower_peak() {
    const std::vector<bool> live = live_at_peak();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (!live[i] || min_.policies[i] == RetentionPolicy::kDropPerUse) continue;
      if (evaluations_left_ == 0) return false;
      --evaluations_left_;
      std::vector<RetentionPolicy> policies = min_.policies;
      policies[i] = policies[i] == RetentionPolicy::kKeep ? RetentionPolicy::kDrop
                                                          : RetentionPolicy::kDropPerUse;
      auto choice = try_out(std::move(policies));
      if (!choice || !needs_less(*choice, min_)) continue;
      min_ = *std::move(choice);
      return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<bool> live_at_peak() const {
    std::vector<bool> is_live(problem_.graph.data.size(), false);
    for (const Life& life : find_lives(problem_.graph, min_.runs)) {
      if (life.begin() <= min_.peak_at && min_.peak_at <= life.last()) {
        is_live[static_cast<std::size_t>(life.data)] = true;
      }
    }
    std::vector<bool> result;
    for (const Recomputable& block : order_) {
      result.push_back(is_live[static_cast<std::size_t>(block.data)]);
    }
    return result;
  }

  [[nodiscard]] Choice keep_what_fits(Choice best) {
    evaluations_left_ = 256;
    std::vector<std::size_t> expensive_first;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (best.policies[i] != RetentionPolicy::kKeep) expensive_first.push_back(i);
    }
    std::ranges::stable_sort(expensive_first, std::ranges::greater{},
                             [&](std::size_t i) { return order_[i].cost; });
    for (bool has_changed = true; has_changed && evaluations_left_ > 0;) {
      has_changed = false;
      for (const std::size_t i : expensive_first) {
        for (const RetentionPolicy better : {RetentionPolicy::kKeep, RetentionPolicy::kDrop}) {
          if (better < best.policies[i]) has_changed |= improve(best, i, better);
        }
      }
    }
    return best;
  }

  bool improve(Choice& best, std::size_t block, RetentionPolicy policy) {
    if (evaluations_left_ == 0) return false;
    --evaluations_left_;
    std::vector<RetentionPolicy> policies = best.policies;
    policies[block] = policy;
    auto choice = try_out(std::move(policies));
    if (!choice || !fits(*choice) || choice->time >= best.time) return false;
    best = *std::move(choice);
    return true;
  }

  const Problem& problem_;
  BlockSizes block_sizes_;
  RecomputationInserter inserter_;
  std::vector<TaskRun> in_order_;
  std::vector<Recomputable> order_;  // cheapest per byte first
  Choice min_;                       // the tried choice that needs least
  int evaluations_left_ = 0;
  std::size_t runs_left_ = std::size_t{3} << 22U;  // over all tried sequences
};

}  // namespace

std::variant<Plan, Infeasible> plan_recompute(const Problem& problem) {
  Search search{problem};
  Choice choice = search.find();
  if (!search.fits(choice)) return need_of(problem, choice.runs);
  Plan plan = plan_without_moves(problem, std::move(choice.runs));
  return plan;
}

}  // namespace spillway::prefetch
