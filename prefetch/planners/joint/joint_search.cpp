#include "prefetch/planners/joint/joint_search.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/bounds/bounds.h"
#include "prefetch/moves/swap_planner.h"
#include "prefetch/need.h"
#include "prefetch/plan_facts.h"
#include "prefetch/planners/joint/decisions.h"
#include "prefetch/planners/joint/move_neighbourhood.h"
#include "prefetch/planners/joint/neighbourhood.h"
#include "prefetch/planners/joint/step_evaluator.h"
#include "prefetch/simulate/simulate.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

int max_evaluations(const DecisionSpace& space) {
  constexpr std::size_t kForEach = 100;
  constexpr std::size_t kMoving = 20;  // intervals that count
  return static_cast<int>(kForEach * (space.droppable().size() + space.choosable().size() +
                                      std::min(kMoving, space.intervals().size())));
}

class JointSearch {
 public:
  JointSearch(const Problem& problem, const SearchLimits& limits)
      : problem_{problem},
        space_{problem},
        neighbourhood_{space_, problem},
        move_neighbourhood_{space_, problem},
        evaluator_{problem, space_, std::min(limits.evaluations, max_evaluations(space_))},
        current_{space_.start()},
        best_{evaluator_.plan(current_)} {
    if (!best_) start_frugal();
    if (best_) good_enough_ = target(limits);
  }

  std::optional<EvaluatedPlan> search() {
    if (!best_) return std::nullopt;
    Incumbent winner{current_, *best_};
    for (const Decisions& start : choose_starts()) {
      restart(start);
      descend(evaluator_.left() - evaluations_per_start_);
      if (best_->makespan < winner.plan.makespan) winner = {current_, *best_};
    }
    current_ = winner.decisions;
    best_ = std::move(winner.plan);
    change_alike();
    perturb();
    return std::move(best_);
  }

  [[nodiscard]] int left() const { return evaluator_.left(); }

 private:
  [[nodiscard]] um::Nanoseconds target(const SearchLimits& limits) const {
    const double bound = static_cast<double>(mixed_transition_bound(problem_).count());
    return um::Nanoseconds{static_cast<std::int64_t>(bound * limits.of_bound)};
  }
  [[nodiscard]] bool is_done() const {
    return evaluator_.left() <= 0 || best_->makespan <= good_enough_;
  }

  // Fast algorithms may not fit beside what is always near.
  void start_frugal() {
    std::ranges::fill(current_.algorithms, 0U);
    best_ = evaluator_.plan(current_);
  }

  struct Incumbent {
    Decisions decisions;
    EvaluatedPlan plan;
  };

  // The most promising selections of cheap blocks to drop: how many, and what else counts as cheap.
  std::vector<Decisions> choose_starts() {
    constexpr std::size_t kFiner = 4;
    constexpr std::size_t kStarts = 3;
    const std::size_t all = space_.droppable().size();
    const std::size_t grid = std::min(all, grid_of_selections());
    std::vector<Selection> coarse;
    for (Selection selection :
         {Selection{}, Selection{.keep_every = 32}, Selection{.keep_every = 12},
          Selection{.keep_every = 6}, Selection{.tilt = -0.7}, Selection{.tilt = 1.5}}) {
      for (std::size_t i = 1; i <= grid; ++i) {
        selection.count = all * i / grid;
        coarse.push_back(selection);
      }
    }
    std::vector<Attempt> best = evaluate(coarse);
    best.resize(std::min(best.size(), kStarts));
    std::vector<Selection> fine;
    for (const Attempt& attempt : best) {
      for (std::size_t i = 1; i < 2 * kFiner; ++i) {
        Selection selection = coarse[attempt.index];
        selection.count = selection.count + all * i / (kFiner * grid) - all / grid;
        if (i != kFiner && selection.count <= all) fine.push_back(selection);
      }
    }
    std::ranges::move(evaluate(fine), std::back_inserter(best));
    sort_by_makespan(best);
    best.resize(std::min(best.size(), kStarts));
    std::vector<Decisions> starts;
    for (const Attempt& attempt : best) {
      starts.push_back(current_);
      starts.back().apply(attempt.edit);
    }
    if (starts.empty()) starts.push_back(current_);
    evaluations_per_start_ = evaluator_.left() / (2 * static_cast<int>(starts.size()));
    return starts;
  }

  // Coarser where only few plans may be made: half of them go into the choice of starts at most.
  [[nodiscard]] std::size_t grid_of_selections() const {
    constexpr int kFinest = 24;
    constexpr int kCoarsest = 4;
    constexpr int kSelections = 6;
    return static_cast<std::size_t>(
        std::clamp(evaluator_.left() / (2 * kSelections), kCoarsest, kFinest));
  }

  void restart(const Decisions& start) {
    current_ = start;
    best_ = evaluator_.plan(current_);
    attempt(neighbourhood_.algorithm_ranges(current_,
                                            std::max<std::size_t>(1, space_.choosable().size())));
  }

  // Goes downhill until nothing helps any more, or until so many evaluations are left.
  void descend(int until) {
    constexpr std::size_t kPieces = 16;
    std::size_t blocks = std::max<std::size_t>(1, space_.droppable().size() / kPieces);
    std::size_t tasks = std::max<std::size_t>(1, space_.choosable().size() / kPieces);
    while (!is_done() && evaluator_.left() > until) {
      bool has_helped = balance(until);
      has_helped =
          attempt(neighbourhood_.ranges(current_, BlockOrder::kByPosition, blocks)) || has_helped;
      has_helped =
          attempt(neighbourhood_.ranges(current_, BlockOrder::kByCost, blocks)) || has_helped;
      has_helped = attempt(neighbourhood_.algorithm_ranges(current_, tasks)) || has_helped;
      has_helped = attempt(move_neighbourhood_.orders(current_)) || has_helped;
      has_helped = choose_moves(until) || has_helped;
      if (has_helped) continue;
      if (blocks == 1 && tasks == 1) return;
      blocks = std::max<std::size_t>(1, blocks / 2);
      tasks = std::max<std::size_t>(1, tasks / 2);
    }
  }

  // Drops what the link is too busy for, keeps what it has time for.
  bool balance(int until) {
    bool has_helped = false;
    while (!is_done() && evaluator_.left() > until) {
      const Timeline timeline = simulate(best_->plan, problem_.profile);
      const std::vector<double> prices = evaluator_.prices(current_);
      std::vector<CandidateEdit> edits =
          neighbourhood_.against_stalls(current_, best_->plan, timeline, prices);
      std::ranges::move(neighbourhood_.against_cost(current_, best_->plan, prices),
                        std::back_inserter(edits));
      if (!attempt(std::move(edits))) break;
      has_helped = true;
    }
    return has_helped;
  }

  // Changes what leaves, interval by interval.
  bool choose_moves(int until) {
    bool has_helped = false;
    while (!is_done() && evaluator_.left() > until) {
      const Timeline timeline = simulate(best_->plan, problem_.profile);
      if (!attempt(move_neighbourhood_.preferences(current_, best_->plan, timeline))) break;
      has_helped = true;
    }
    return has_helped;
  }

  // Changes all of what is alike, and how far moves look ahead; then goes downhill from there.
  void change_alike() {
    constexpr int kRounds = 3;
    for (int round = 0; round < kRounds && !is_done(); ++round) {
      bool has_helped = attempt(move_neighbourhood_.looking_ahead(current_));
      has_helped = attempt(neighbourhood_.alike(current_)) || has_helped;
      has_helped = attempt(move_neighbourhood_.alike(current_)) || has_helped;
      if (!has_helped) return;
      descend(evaluator_.left() - evaluations_per_start_);
    }
  }

  // Leaves a local optimum by a few random changes and goes downhill from there, again and again.
  void perturb() {
    constexpr int kDownhill = 200;
    constexpr std::size_t kExchanges = 64;
    constexpr int kTries = 4;
    std::mt19937_64 generator{0};
    while (!is_done()) {
      for (int failed = 0; failed < kTries && !is_done(); ++failed) {
        if (attempt(neighbourhood_.exchanges(current_, evaluator_.prices(current_), kExchanges,
                                             generator))) {
          failed = -1;
        }
      }
      const CandidateEdit edit = random_edit(generator);
      if (edit.empty()) return;  // nothing is left open
      Incumbent local_optimum{current_, *best_};
      current_.apply(edit);
      best_ = evaluator_.plan(current_);
      if (best_) balance(evaluator_.left() - kDownhill);
      if (best_) choose_moves(evaluator_.left() - kDownhill);
      if (best_ && best_->makespan < local_optimum.plan.makespan) continue;
      current_ = local_optimum.decisions;
      best_ = std::move(local_optimum.plan);
    }
  }

  CandidateEdit random_edit(std::mt19937_64& generator) {
    constexpr std::size_t kChanges = 8;
    constexpr std::size_t kMoves = 4;
    CandidateEdit edit;
    if (generator() % 2 == 0) edit = neighbourhood_.random(current_, kChanges, generator);
    if (edit.empty()) edit = move_neighbourhood_.random(current_, kMoves, generator);
    if (edit.empty()) edit = neighbourhood_.random(current_, kChanges, generator);
    return edit;
  }

  // Evaluates the edits from here, and those that help together; takes the best. True when one
  // helped.
  bool attempt(std::vector<CandidateEdit> edits) {
    std::vector<Attempt> helpful = evaluate(std::move(edits));
    if (helpful.empty()) return false;
    std::vector<CandidateEdit> together;
    CandidateEdit sum = helpful.front().edit;
    constexpr std::size_t kTogether = 12;
    for (std::size_t i = 1; i < std::min(helpful.size(), kTogether); ++i) {
      sum.insert(sum.end(), helpful[i].edit.begin(), helpful[i].edit.end());
      together.push_back(sum);
    }
    std::vector<Attempt> combined = evaluate(std::move(together));
    std::ranges::move(combined, std::back_inserter(helpful));
    sort_by_makespan(helpful);
    current_.apply(helpful.front().edit);
    best_ = std::move(helpful.front().result);
    return true;
  }

  // Those of the edits that make the plan shorter, the best first.
  std::vector<Attempt> evaluate(std::vector<CandidateEdit> edits) {
    return evaluator_.shorter(current_, best_->makespan, std::move(edits));
  }
  std::vector<Attempt> evaluate(std::span<const Selection> selections) {
    std::vector<CandidateEdit> edits;
    edits.reserve(selections.size());
    for (const Selection& selection : selections) {
      edits.push_back(neighbourhood_.drop_cheapest(selection));
    }
    return evaluate(std::move(edits));
  }

  const Problem& problem_;
  DecisionSpace space_;
  Neighbourhood neighbourhood_;
  MoveNeighbourhood move_neighbourhood_;
  StepEvaluator evaluator_;
  int evaluations_per_start_ = 0;
  Decisions current_;
  std::optional<EvaluatedPlan> best_;  // of current_
  um::Nanoseconds good_enough_{0};
};

// The same search of at most `left` evaluations, which it takes those that it needs from.
std::optional<EvaluatedPlan> joint_search(const Problem& problem, SearchLimits limits, int& left) {
  limits.evaluations = std::min(limits.evaluations, left);
  JointSearch search{problem, limits};
  const int before = search.left();
  auto best = search.search();
  left -= before - search.left();
  return best;
}

}  // namespace

SearchLimits limits_for(const Problem& problem) {
  const NearNeed need = near_need(problem.graph, BlockSizes{problem.graph, problem.page});
  const um::Bytes missing = um::saturating_difference(need.resident, problem.budget);
  const auto moves =
      static_cast<double>(missing.count()) / static_cast<double>(problem.chunk.count());
  const double entries = std::max(1.0, static_cast<double>(problem.graph.tasks.size()) + moves);
  return {.evaluations = static_cast<int>(std::clamp(7e6 / entries, 40.0, 20000.0))};
}

std::optional<EvaluatedPlan> joint_search(const Problem& problem, const SearchLimits& limits) {
  return JointSearch{problem, limits}.search();
}

namespace {

// The plan that moves nothing and takes the fastest algorithms, where that keeps the budget and
// nothing makes a task wait: no plan is shorter.
std::optional<Plan> plan_unhindered(const Problem& problem) {
  if (!problem.graph.far_updates.empty()) return std::nullopt;
  const SwapPlanner planner{problem};
  std::optional<Plan> resident = planner.plan(planner.fastest(), {});
  if (!resident) return std::nullopt;
  auto result = evaluated(problem, std::move(*resident));
  if (!result || result->makespan > fastest_step(problem.profile)) return std::nullopt;
  return std::move(result->plan);
}

// Plans with the problem's budget and with smaller ones, whose plans keep it, too: a search may
// have more luck with less room, and more room must not make a step longer.
class SmallerBudgets {
 public:
  SmallerBudgets(const Problem& problem, std::span<const StartingStrategy> strategies)
      : problem_{problem}, strategies_{strategies}, limits_{limits_for(problem)} {}

  std::optional<EvaluatedPlan> best() {
    std::optional<EvaluatedPlan> best = best_within(problem_.budget);
    if (!best) return std::nullopt;
    constexpr std::uint64_t kBudgets = 16;
    const std::uint64_t pages = pages_that_may_be_spared(best->makespan);
    // Doubles the work at most, where they are many.
    if (pages > kBudgets) left_ = std::min(left_, plans_for(limits_) - left_);
    for (std::uint64_t i = 1; i <= std::min(pages, kBudgets) && left_ > 0; ++i) {
      const um::Bytes budget = less(std::max(i, pages * i / kBudgets));
      if (bound(budget) >= best->makespan) break;
      auto smaller = best_within(budget);
      if (smaller && smaller->makespan < best->makespan) best = std::move(smaller);
    }
    best->plan.budget = problem_.budget;
    return best;
  }

 private:
  // Asking all strategies takes as long as making so many plans.
  static constexpr int kPlansOfPortfolio = 64;

  // Plans that one budget may take.
  static int plans_for(const SearchLimits& limits) {
    return limits.evaluations + kPlansOfPortfolio;
  }
  [[nodiscard]] Problem with(um::Bytes budget) const {
    Problem problem = problem_;
    problem.budget = budget;
    return problem;
  }
  [[nodiscard]] um::Nanoseconds bound(um::Bytes budget) const {
    return mixed_transition_bound(with(budget));
  }

  // Returns what the search finds with that budget, or a strategy that knows better.
  std::optional<EvaluatedPlan> best_within(um::Bytes budget) {
    const Problem problem = with(budget);
    auto best = joint_search(problem, limits_, left_);
    if (!best) return std::nullopt;
    best = evaluated(problem, std::move(best->plan));
    left_ -= kPlansOfPortfolio;
    auto shorter =
        Portfolio{problem, strategies_}.shorter(best ? best->makespan : um::Nanoseconds::max());
    um::expects(best || shorter, "a plan that the search finds is verified");
    return shorter ? std::move(shorter) : std::move(best);
  }

  [[nodiscard]] um::Bytes less(std::uint64_t pages) const {
    return problem_.budget - pages * problem_.page;
  }

  // With so many pages less a step could still, by its bound, be shorter than `makespan`.
  [[nodiscard]] std::uint64_t pages_that_may_be_spared(um::Nanoseconds makespan) const {
    const um::Bytes smallest = near_need(problem_.graph, block_sizes_).smallest;
    std::uint64_t shorter = 0;
    std::uint64_t not_shorter = (problem_.budget - smallest) / problem_.page + 1;
    while (not_shorter - shorter > 1) {
      const std::uint64_t middle = shorter + (not_shorter - shorter) / 2;
      (bound(less(middle)) < makespan ? shorter : not_shorter) = middle;
    }
    return shorter;
  }

  const Problem& problem_;
  std::span<const StartingStrategy> strategies_;
  SearchLimits limits_;
  BlockSizes block_sizes_{problem_.graph, problem_.page};
  int left_ = plans_for(limits_);  // for all budgets together
};

}  // namespace

std::variant<Plan, Infeasible> plan_joint(const Problem& problem,
                                          std::span<const StartingStrategy> strategies) {
  if (std::optional<Plan> unhindered = plan_unhindered(problem)) return std::move(*unhindered);
  auto best = SmallerBudgets{problem, strategies}.best();
  if (!best) return infeasible(problem);
  return std::move(best->plan);
}

}  // namespace spillway::prefetch
