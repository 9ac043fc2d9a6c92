#include "prefetch/planners/joint/step_evaluator.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "prefetch/profile.h"

namespace spillway::prefetch {
namespace {

// Building a sequence of runs takes an eighth of the time of planning its moves.
constexpr std::size_t kSequencesForOnePlan = 8;

}  // namespace

void sort_by_makespan(std::vector<Attempt>& attempts) {
  std::ranges::stable_sort(attempts, {}, [](const Attempt& a) { return a.result->makespan; });
}

StepEvaluator::StepEvaluator(const Problem& problem, const DecisionSpace& space, int evaluations)
    : problem_{problem},
      space_{space},
      offload_{problem},
      finders_{[&problem] { return LifeFinder{problem.graph}; }},
      left_{evaluations} {}

std::optional<EvaluatedPlan> StepEvaluator::plan(const Decisions& decisions) {
  count(1, 0);
  return offload_.plan(space_.runs(decisions), finders_.local(), space_.moves(decisions));
}

std::vector<Attempt> StepEvaluator::shorter(const Decisions& from, um::Nanoseconds limit,
                                            std::vector<CandidateEdit> edits) {
  if (left_ <= 0) return {};
  edits.resize(std::min(edits.size(), static_cast<std::size_t>(left_)));
  std::vector<Attempt> attempts(edits.size());
  std::atomic<std::size_t> planned = 0;
  tbb::parallel_for(std::size_t{0}, edits.size(), [&](std::size_t i) {
    Decisions decisions = from;
    decisions.apply(edits[i]);
    std::vector<TaskRun> runs = space_.runs(decisions);
    if (compute_time(problem_.profile, runs) >= limit) return;
    ++planned;
    auto result = offload_.plan(std::move(runs), finders_.local(), space_.moves(decisions));
    if (!result || result->makespan >= limit) return;
    attempts[i] = {.edit = std::move(edits[i]), .index = i, .result = std::move(result)};
  });
  count(planned, attempts.size() - planned);
  std::erase_if(attempts, [](const Attempt& attempt) { return !attempt.result; });
  sort_by_makespan(attempts);
  return attempts;
}

std::vector<double> StepEvaluator::prices(const Decisions& from) {
  constexpr std::size_t kMany = 20;  // at most a 20th of the evaluations left goes into prices
  const std::vector<Recomputable>& blocks = space_.droppable();
  std::vector<double> prices;
  prices.reserve(blocks.size());
  for (const Recomputable& block : blocks) {
    prices.push_back(um::seconds(block.cost) / static_cast<double>(block.size.count()));
  }
  const auto left = static_cast<std::size_t>(std::max(0, left_));
  if (kMany * blocks.size() > kSequencesForOnePlan * left) return prices;
  const double now = compute_seconds(from);
  tbb::parallel_for(std::size_t{0}, blocks.size(), [&](std::size_t i) {
    Decisions other = from;
    other.policies[i] = from.policies[i] == RetentionPolicy::kKeep ? RetentionPolicy::kDrop
                                                                   : RetentionPolicy::kKeep;
    prices[i] =
        std::abs(compute_seconds(other) - now) / static_cast<double>(blocks[i].size.count());
  });
  count(0, blocks.size());
  return prices;
}

double StepEvaluator::compute_seconds(const Decisions& decisions) const {
  return um::seconds(compute_time(problem_.profile, space_.runs(decisions)));
}

void StepEvaluator::count(std::size_t planned, std::size_t unplanned) {
  unplanned_ += unplanned;
  left_ -= static_cast<int>(planned + unplanned_ / kSequencesForOnePlan);
  unplanned_ %= kSequencesForOnePlan;
}

}  // namespace spillway::prefetch
