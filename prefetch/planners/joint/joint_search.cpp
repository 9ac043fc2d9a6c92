#include "prefetch/planners/joint/joint_search.h"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/bounds/bounds.h"
#include "prefetch/liveness.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/moves/recomputation.h"
#include "prefetch/moves/swap_planner.h"
#include "prefetch/planner.h"
#include "prefetch/planners/joint/decisions.h"
#include "prefetch/planners/joint/neighbourhood.h"
#include "prefetch/planners/joint/order_search.h"
#include "prefetch/profile.h"
#include "prefetch/simulate/simulate.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

// An edit of given decisions, and its plan.
struct Attempt {
  CandidateEdit edit;
  std::size_t index = 0;  // among those evaluated together
  std::optional<EvaluatedPlan> result;
};

// Judges edits by the simulated length of their plans, many at once, and counts the plans. The
// results and the count do not depend on the number of threads. `problem` and `space` must outlive
// it.
class StepEvaluator {
 public:
  StepEvaluator(const Problem& problem, const DecisionSpace& space, int evaluations);

  // Returns how many plans may still be made; negative if the last batch exceeded the limit.
  [[nodiscard]] int left() const { return left_; }

  // Returns the plan of `decisions`; nullopt when some run does not fit.
  [[nodiscard]] std::optional<EvaluatedPlan> plan(const Decisions& decisions);

  // Returns the edits of `from` with plans shorter than `limit`, the best first. Skips planning if
  // the runs alone take as long.
  [[nodiscard]] std::vector<Attempt> shorter(const Decisions& from, um::Nanoseconds limit,
                                             std::vector<CandidateEdit> edits);

  // Returns by droppable block the cost of its recomputation per byte beside the blocks that
  // `from` drops; if that takes too long, the cost with all inputs present.
  [[nodiscard]] std::vector<double> prices(const Decisions& from);

 private:
  [[nodiscard]] double compute_seconds(const Decisions& decisions) const;
  void count(std::size_t planned, std::size_t unplanned);

  const Problem& problem_;
  const DecisionSpace& space_;
  OffloadPlanner offload_;
  tbb::enumerable_thread_specific<LifeFinder> finders_;
  int left_;
  std::size_t unplanned_ = 0;  // sequences made but not counted yet
};

// Building a sequence of runs takes an eighth of the time of planning its moves.
constexpr std::size_t kSequencesForOnePlan = 8;

// Sorts the shortest plans first. Requires: each attempt has a plan.
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

  // Starts with the first algorithms: fast ones may not fit beside pinned blocks.
  void start_frugal() {
    std::ranges::fill(current_.algorithms, 0U);
    best_ = evaluator_.plan(current_);
  }

  struct Incumbent {
    Decisions decisions;
    EvaluatedPlan plan;
  };

  // Returns the most promising selections of cheap blocks to drop: their number, and other
  // criteria.
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

  // Returns the grid size: coarser if few plans are left; at most half of these go into the starts.
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

  // Descends until no change helps, or `until` evaluations are left.
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

  // Drops blocks that the link is too busy for, and keeps blocks that it has time for.
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

  // Changes which blocks leave, interval by interval.
  bool choose_moves(int until) {
    bool has_helped = false;
    while (!is_done() && evaluator_.left() > until) {
      const Timeline timeline = simulate(best_->plan, problem_.profile);
      if (!attempt(move_neighbourhood_.preferences(current_, best_->plan, timeline))) break;
      has_helped = true;
    }
    return has_helped;
  }

  // Changes groups of alike decisions, and how far moves look ahead; then descends from there.
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

  // Repeatedly leaves a local optimum by a few random changes and descends from there.
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
      if (edit.empty()) return;  // nothing is open
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

  // Evaluates the edits from the current decisions, and combinations of helpful ones; applies the
  // best. Returns true when one helped.
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

  // Returns the edits that make the plan shorter, the best first.
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
  std::optional<EvaluatedPlan> best_;  // the plan of current_
  um::Nanoseconds good_enough_{0};
};

// Runs joint_search() with at most `left` evaluations, and subtracts those used.
std::optional<EvaluatedPlan> joint_search(const Problem& problem, SearchLimits limits, int& left) {
  limits.evaluations = std::min(limits.evaluations, left);
  JointSearch search{problem, limits};
  const int before = search.left();
  auto best = search.search();
  left -= before - search.left();
  return best;
}

// Returns the plan without moves and with the fastest algorithms, if that keeps the budget and no
// task waits: no plan is shorter.
std::optional<Plan> plan_unhindered(const Problem& problem) {
  if (!problem.graph.far_updates.empty()) return std::nullopt;
  const SwapPlanner planner{problem};
  std::optional<Plan> resident = planner.plan(planner.fastest(), {});
  if (!resident) return std::nullopt;
  auto result = evaluated(problem, std::move(*resident));
  if (!result || result->makespan > fastest_step(problem.profile)) return std::nullopt;
  return std::move(result->plan);
}

// Returns the shortest plan that moves nothing.
std::variant<Plan, Infeasible> plan_without_any_move(const Problem& problem,
                                                     std::span<const StartingStrategy> strategies) {
  auto best = Portfolio{problem, strategies}.shorter(um::Nanoseconds::max());
  const um::Nanoseconds limit = best ? best->makespan : um::Nanoseconds::max();
  if (limit > fastest_step(problem.profile)) {
    auto reordered = plan_reordered_without_moves(problem, limit);
    if (reordered) best = std::move(reordered);
  }
  if (!best) return need_of(problem, runs_in_order(problem.graph));
  return std::move(best->plan);
}

// Plans with the problem's budget and with smaller ones, which keep it, too. A search may be
// luckier with less room, and more room must not make a step longer.
class SmallerBudgets {
 public:
  SmallerBudgets(const Problem& problem, std::span<const StartingStrategy> strategies)
      : problem_{problem}, strategies_{strategies}, limits_{limits_for(problem)} {}

  std::optional<EvaluatedPlan> best() {
    std::optional<EvaluatedPlan> best = best_within(problem_.budget);
    if (!best) return std::nullopt;
    constexpr std::uint64_t kBudgets = 16;
    const std::uint64_t pages = pages_that_may_be_spared(best->makespan);
    // At most doubles the work if there are many.
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
  // The cost of asking all strategies, in plans.
  static constexpr int kPlansOfPortfolio = 64;

  // Returns the number of plans for one budget.
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

  // Returns the plan of the search with that budget, or of a better strategy.
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

  // Returns by how many pages the budget can shrink so that the bound stays below `makespan`.
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

Portfolio::Portfolio(const Problem& problem, std::span<const StartingStrategy> strategies)
    : problem_{problem}, strategies_{strategies} {}

bool Portfolio::is_allowed(const Plan& plan) const {
  if (plan.residency != Residency::kPlanned) return false;
  if (!problem_.may_move && moves_anything(plan)) return false;
  if (problem_.whole_blocks && !moves_whole_blocks(plan, problem_.graph)) return false;
  return problem_.may_recompute || std::ranges::none_of(plan.runs, &TaskRun::is_recomputation);
}

std::optional<EvaluatedPlan> Portfolio::shorter(um::Nanoseconds limit) const {
  if (!problem_.graph.far_updates.empty()) return std::nullopt;  // most planners refuse these
  const std::size_t tasks = problem_.graph.tasks.size();
  const auto is_asked = [tasks](const StartingStrategy& each) { return tasks <= each.max_tasks; };
  if (std::ranges::none_of(strategies_, is_asked)) return std::nullopt;
  const Bounds bounds = lower_bounds(problem_);
  std::vector<std::optional<EvaluatedPlan>> found(strategies_.size());
  tbb::parallel_for(std::size_t{0}, strategies_.size(), [&](std::size_t i) {
    const StartingStrategy& strategy = strategies_[i];
    const bool recomputes = strategy.recomputes && problem_.may_recompute;
    const um::Nanoseconds least = recomputes ? bounds.mixed_transition : bounds.offload_transition;
    if (least < limit && is_asked(strategy)) found[i] = plan_by(strategy);
  });
  std::optional<EvaluatedPlan> shortest;
  for (std::optional<EvaluatedPlan>& each : found) {
    if (!each || each->makespan >= (shortest ? shortest->makespan : limit)) continue;
    shortest = std::move(each);
  }
  return shortest;
}

std::optional<EvaluatedPlan> Portfolio::plan_by(const StartingStrategy& strategy) const {
  try {
    auto result = strategy.plan(problem_);
    auto* const plan = std::get_if<Plan>(&result);
    if (plan == nullptr || !is_allowed(*plan)) return std::nullopt;
    return evaluated(problem_, std::move(*plan));
  } catch (const um::ContractError&) {
    return std::nullopt;  // a bug of that strategy, which must not affect joint
  }
}

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

std::variant<Plan, Infeasible> plan_joint(const Problem& problem,
                                          std::span<const StartingStrategy> strategies) {
  if (std::optional<Plan> unhindered = plan_unhindered(problem)) return std::move(*unhindered);
  if (!problem.may_move) return plan_without_any_move(problem, strategies);
  auto best = SmallerBudgets{problem, strategies}.best();
  if (!best) return infeasible(problem);
  if (may_pay_to_reorder(problem, best->makespan)) {
    const int evaluations = limits_for(problem).evaluations / 2;
    auto layered = plan_layered(problem, best->makespan, evaluations);
    if (layered) best = std::move(layered);
    auto reordered = plan_reordered(problem, best->makespan, evaluations);
    if (reordered) best = std::move(reordered);
  }
  return std::move(best->plan);
}

}  // namespace spillway::prefetch
