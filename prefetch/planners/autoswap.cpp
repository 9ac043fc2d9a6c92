#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/saved_blocks.h"
#include "prefetch/moves/swap_planner.h"
#include "prefetch/planners/strategies.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

constexpr std::size_t kScores = 4;
using Weights = std::array<double, kScores>;  // of DOA, AOA, WDOA, SWDOA; their sum is 1

// Divides all by the largest magnitude.
void normalize(std::vector<double>& scores) {
  double largest = 0;
  for (const double score : scores) largest = std::max(largest, std::abs(score));
  if (largest == 0) return;
  for (double& score : scores) score /= largest;
}

// Chooses blocks until the budget is kept. `all` has the swaps of all candidates.
class CandidateSelection {
 public:
  CandidateSelection(const Problem& problem, const SwapPlanner& planner,
                     std::span<const TaskRun> runs, std::span<const Swap> all)
      : all_{all},
        load_{planner.near_during(runs, {})},
        pool_{planner.block_sizes().pool(problem.budget)} {
    for (const TaskRun& run : runs) durations_.push_back(um::to_double(problem.profile(run)));
    find_time_scores(problem.profile.link);
    weighted_ = weighted_durations(load_);
    normalize(weighted_);
  }

  // Returns the choice, in order of `last` like `all`. Requires: `all` keeps the budget.
  [[nodiscard]] std::vector<Swap> choose(const Weights& weights) const {
    std::vector<Bytes> load = load_;
    std::vector<bool> is_chosen(all_.size(), false);
    while (const std::optional<std::size_t> i = best(weights, load, is_chosen)) {
      is_chosen[*i] = true;
      for (Position p = all_[*i].needed; p < all_[*i].back; ++p) {
        load[p] -= all_[*i].size;
      }
    }
    std::vector<Swap> swaps;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (is_chosen[i]) swaps.push_back(all_[i]);
    }
    return swaps;
  }

 private:
  void find_time_scores(const LinkProfile& link) {
    std::vector<double> starts{0};  // by run, and after the last
    for (const double duration : durations_) starts.push_back(starts.back() + duration);
    for (const Swap& swap : all_) {
      const Bytes size = swap.size;
      const double duration = starts[swap.back] - starts[swap.needed];
      const double transfers = um::to_double(link.latency + size / link.offload) +
                               um::to_double(link.latency + size / link.prefetch);
      const double left = duration - transfers;
      const auto bytes = static_cast<double>(size.count());
      far_durations_.push_back(duration);
      far_areas_.push_back(left >= 0 ? left * bytes : left / bytes);
    }
    normalize(far_durations_);
    normalize(far_areas_);
  }

  // Returns by block the integral of load - budget over its far interval.
  [[nodiscard]] std::vector<double> weighted_durations(std::span<const Bytes> load) const {
    std::vector<double> sums{0};
    for (std::size_t p = 0; p < load.size(); ++p) {
      const double excess =
          static_cast<double>(load[p].count()) - static_cast<double>(pool_.count());
      sums.push_back(sums.back() + excess * durations_[p]);
    }
    std::vector<double> result;
    result.reserve(all_.size());
    for (const Swap& swap : all_) {
      result.push_back(sums[swap.back] - sums[swap.needed]);
    }
    return result;
  }

  // Returns the next block to swap; nullopt when no run exceeds the budget.
  [[nodiscard]] std::optional<std::size_t> best(const Weights& weights, std::span<const Bytes> load,
                                                const std::vector<bool>& is_chosen) const {
    std::vector<std::uint32_t> exceeding{0};  // by run: earlier runs that exceed the budget
    for (const Bytes bytes : load) exceeding.push_back(exceeding.back() + (bytes > pool_ ? 1 : 0));
    if (exceeding.back() == 0) return std::nullopt;
    std::vector<double> submodular = weighted_durations(load);
    normalize(submodular);
    std::optional<std::size_t> best;
    double best_score = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (is_chosen[i] || exceeding[all_[i].back] == exceeding[all_[i].needed]) continue;
      const double score = weights[0] * far_durations_[i] + weights[1] * far_areas_[i] +
                           weights[2] * weighted_[i] + weights[3] * submodular[i];
      if (!best || score > best_score) {
        best = i;
        best_score = score;
      }
    }
    return best;
  }

  std::span<const Swap> all_;
  std::vector<Bytes> load_;  // by run, when nothing moves
  Bytes pool_;
  std::vector<double> durations_;      // by run, ns
  std::vector<double> far_durations_;  // scores by block, normalised
  std::vector<double> far_areas_;
  std::vector<double> weighted_;
};

// Proposes weights: corners and centre, then alternately uniform draws and draws near the best.
class WeightSearch {
 public:
  [[nodiscard]] Weights next(const Weights& best) {
    const std::size_t count = count_++;
    Weights weights{};
    if (count < kScores) {
      weights[count] = 1;
      return weights;
    }
    if (count == kScores) {
      weights.fill(1.0 / kScores);
      return weights;
    }
    constexpr double kStep = 0.3;
    const bool is_near_best = count % 2 == 0;
    double sum = 0;
    for (std::size_t i = 0; i < kScores; ++i) {
      const double draw = static_cast<double>(random_() >> 11U) * 0x1p-53;  // uniform in [0, 1)
      weights[i] = is_near_best ? best[i] + kStep * draw : draw;
      sum += weights[i];
    }
    for (double& weight : weights) weight /= sum;
    return weights;
  }

 private:
  std::mt19937_64 random_{1};
  std::size_t count_ = 0;
};

}  // namespace

std::variant<Plan, Infeasible> plan_autoswap(const Problem& problem) {
  constexpr int kEvaluations = 32;
  const SwapPlanner planner{problem};
  const auto all =
      away_until_used(find_saved_blocks(problem.graph, planner.block_sizes(), planner.frugal()));
  const std::vector<TaskRun> runs = planner.fastest_beside(all);
  if (!planner.keeps_budget(runs, all)) return planner.infeasible(all);
  const CandidateSelection selection{problem, planner, runs, all};
  WeightSearch search;
  Weights best_weights{};
  std::optional<EvaluatedPlan> best;
  for (int i = 0; i < kEvaluations; ++i) {
    const Weights weights = search.next(best_weights);
    auto result = evaluated(problem, *planner.plan_eagerly(runs, selection.choose(weights)));
    if (!result || (best && result->makespan >= best->makespan)) continue;
    best = std::move(result);
    best_weights = weights;
  }
  um::expects(best.has_value(), "swaps that keep the budget make a plan that verifies");
  return std::move(best->plan);
}

}  // namespace spillway::prefetch
