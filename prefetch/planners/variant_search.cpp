#include "prefetch/planners/variant_search.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/bounds/any_order.h"
#include "prefetch/bounds/bounds.h"
#include "prefetch/planners/joint/joint_search.h"
#include "um/bytes.h"

namespace spillway::prefetch {
namespace {

using um::Nanoseconds;

constexpr std::size_t kMostPlanned = 32;  // choices that are all planned
constexpr std::size_t kBest = 3;          // of the choices that were estimated: planned
constexpr std::size_t kEstimates = 160;
constexpr std::size_t kEstimatesWithoutMoves = 16;  // each takes as long as a plan

// Returns sets of groups with variants of the same names, each in the graph's order.
std::vector<std::vector<std::size_t>> alike(const std::vector<VariantGroup>& groups) {
  std::map<std::vector<std::string>, std::size_t> places;
  std::vector<std::vector<std::size_t>> sets;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto place = places.emplace(groups[g].names, sets.size()).first->second;
    if (place == sets.size()) sets.emplace_back();
    sets[place].push_back(g);
  }
  return sets;
}

// Returns all choices if there are at most kMostPlanned, the first ones first.
std::optional<std::vector<VariantChoice>> all_choices(const VariedStep& step) {
  std::vector<VariantChoice> all{{}};
  for (const VariantGroup& group : step.groups) {
    if (all.size() * group.names.size() > kMostPlanned) return std::nullopt;
    std::vector<VariantChoice> longer;
    for (const VariantChoice& choice : all) {
      for (std::uint32_t v = 0; v < group.names.size(); ++v) {
        longer.push_back(choice);
        longer.back().push_back(v);
      }
    }
    all = std::move(longer);
  }
  return all;
}

class VariantSearch {
 public:
  VariantSearch(const Planner& planner, const VariedStep& step, const StepOfChoice& make,
                const Problem& like, const AskOptions& options)
      : planner_{planner},
        step_{step},
        make_{make},
        like_{like},
        options_{options},
        estimates_left_{like.may_move ? kEstimates : kEstimatesWithoutMoves} {}

  VariedAnswer find() {
    const auto begin = std::chrono::steady_clock::now();
    const auto all = all_choices(step_);
    plan(all ? *all : promising());
    if (!best_) {
      VariantChoice leanest = step_.leanest(like_.page);
      ChosenStep made = make_(leanest);
      auto answer = ask(planner_, problem_of(made), options_);
      if (auto* const found = std::get_if<Answer>(&answer)) {
        found->planning = std::chrono::steady_clock::now() - begin;
      }
      return {.choice = std::move(leanest), .step = std::move(made), .answer = std::move(answer)};
    }
    std::get<Answer>(best_->answer).planning = std::chrono::steady_clock::now() - begin;
    return *std::move(best_);
  }

 private:
  [[nodiscard]] Problem problem_of(const ChosenStep& made) const {
    return like_.with(*made.graph, made.profile);
  }

  // Returns a time that no plan of the problem is below; nothing if no plan keeps its budget.
  [[nodiscard]] static std::optional<Nanoseconds> bound_of(const Problem& problem) {
    const BlockSizes block_sizes{problem.graph, problem.page};
    if (problem.budget < near_need(problem.graph, block_sizes).smallest) return std::nullopt;
    return problem.may_reorder ? any_order_bound(problem) : mixed_transition_bound(problem);
  }

  // Plans the steps of `choices`, those with the lowest bounds first.
  void plan(const std::vector<VariantChoice>& choices) {
    std::vector<std::pair<Nanoseconds, const VariantChoice*>> by_bound;
    for (const VariantChoice& choice : choices) {
      const ChosenStep made = make_(choice);
      if (const auto bound = bound_of(problem_of(made))) by_bound.emplace_back(*bound, &choice);
    }
    std::ranges::stable_sort(by_bound, {}, [](const auto& each) { return each.first; });
    for (const auto& [bound, choice] : by_bound) {
      if (bound >= shortest_) return;
      ChosenStep made = make_(*choice);
      auto answer = ask(planner_, problem_of(made), options_);
      const auto* const found = std::get_if<Answer>(&answer);
      if (found == nullptr || found->timeline.makespan() >= shortest_) continue;
      shortest_ = found->timeline.makespan();
      best_ = {.choice = *choice, .step = std::move(made), .answer = std::move(answer)};
    }
  }

  // Returns the choices with the lowest estimates, and the first variants.
  std::vector<VariantChoice> promising() {
    now_ = step_.fastest();
    time_ = estimate(now_, Nanoseconds::max());
    if (time_ > fastest_step(make_(now_).profile)) {
      for (const VariantChoice& start : starts()) try_out(start);
      std::size_t length = 1;
      while (length < step_.groups.size()) length *= 2;
      descend(length);
      perturb();
    }
    std::vector<std::pair<Nanoseconds, VariantChoice>> best;
    for (const auto& [choice, time] : estimated_) {
      if (time < Nanoseconds::max()) best.emplace_back(time, choice);
    }
    std::ranges::stable_sort(best);
    best.resize(std::min(best.size(), kBest));
    std::vector<VariantChoice> result{step_.first()};
    for (auto& [time, choice] : best) {
      if (choice != result.front()) result.push_back(std::move(choice));
    }
    return result;
  }

  // Returns choices other than the fastest from which the search may begin.
  [[nodiscard]] std::vector<VariantChoice> starts() const {
    std::vector<VariantChoice> result{step_.first(), step_.leanest(like_.page)};
    std::size_t most = 0;
    for (const VariantGroup& group : step_.groups) most = std::max(most, group.names.size());
    for (std::size_t place = 1; place < std::min<std::size_t>(most, 8); ++place) {
      VariantChoice choice;
      for (const VariantGroup& group : step_.groups) {
        std::vector<std::uint32_t> by_time(group.names.size());
        std::iota(by_time.begin(), by_time.end(), 0U);
        std::ranges::stable_sort(by_time, {}, [&](std::uint32_t v) { return group.time(v); });
        choice.push_back(by_time[std::min(place, by_time.size() - 1)]);
      }
      result.push_back(std::move(choice));
    }
    return result;
  }

  // Takes the choice if it is better.
  bool try_out(const VariantChoice& choice) {
    const Nanoseconds time = estimate(choice, time_);
    if (time >= time_) return false;
    now_ = choice;
    time_ = time;
    return true;
  }

  // Changes ranges of up to `length` alike groups where that helps, then shorter ones.
  void descend(std::size_t length) {
    while (length > 0) {
      bool has_helped = false;
      for (const std::vector<std::size_t>& set : alike_) {
        for (std::size_t first = 0; first < set.size(); first += length) {
          const std::size_t end = std::min(first + length, set.size());
          for (std::uint32_t v = 0; v < step_.groups[set[first]].names.size(); ++v) {
            if (!may_estimate()) return;
            VariantChoice choice = now_;
            for (std::size_t i = first; i < end; ++i) choice[set[i]] = v;
            has_helped = try_out(choice) || has_helped;
          }
        }
      }
      if (!has_helped) length /= 2;
    }
  }

  // Leaves a local optimum by two random changes, and descends from there.
  void perturb() {
    constexpr int kTries = 24;
    std::mt19937_64 generator{0};
    for (int failed = 0; failed < kTries && may_estimate(); ++failed) {
      const VariantChoice best = now_;
      const Nanoseconds shortest = time_;
      for (int i = 0; i < 2; ++i) {
        const std::size_t g = generator() % step_.groups.size();
        now_[g] = static_cast<std::uint32_t>(generator() % step_.groups[g].names.size());
      }
      time_ = estimate(now_, Nanoseconds::max());
      if (time_ < Nanoseconds::max()) descend(1);
      if (time_ < shortest) {
        failed = -1;
      } else {
        now_ = best;
        time_ = shortest;
      }
    }
  }

  [[nodiscard]] bool may_estimate() const { return estimates_left_ > 0 && tries_left_ > 0; }

  // Returns the makespan of a plan that is found soon; Nanoseconds::max() if there is none, or it
  // was not below the limit when the choice came first.
  Nanoseconds estimate(const VariantChoice& choice, Nanoseconds limit) {
    const auto known = estimated_.find(choice);
    if (known != estimated_.end()) return known->second;
    if (!may_estimate()) return Nanoseconds::max();
    --tries_left_;
    Nanoseconds& time = estimated_[choice];
    time = Nanoseconds::max();
    const ChosenStep made = make_(choice);
    const Problem problem = problem_of(made);
    const auto bound = bound_of(problem);
    if (!bound || *bound >= limit) return time;
    --estimates_left_;
    if (const auto found = plan_soon(problem)) time = found->makespan;
    return time;
  }

  [[nodiscard]] std::optional<EvaluatedPlan> plan_soon(const Problem& problem) const {
    constexpr int kPart = 64;  // of the plans that joint compares
    constexpr int kFewest = 16;
    if (like_.may_move) {
      SearchLimits limits = limits_for(problem);
      limits.evaluations = std::max(kFewest, limits.evaluations / kPart);
      return joint_search(problem, limits);
    }
    auto planned = planner_.plan(problem);
    auto* const plan = std::get_if<Plan>(&planned);
    if (plan == nullptr) return std::nullopt;
    return evaluated(problem, std::move(*plan));
  }

  const Planner& planner_;
  const VariedStep& step_;
  const StepOfChoice& make_;
  const Problem& like_;
  const AskOptions& options_;
  std::size_t estimates_left_;
  std::size_t tries_left_ = 8 * kEstimates;         // each takes a lower bound
  std::map<VariantChoice, Nanoseconds> estimated_;  // max(): no plan, or none that helps
  std::vector<std::vector<std::size_t>> alike_ = alike(step_.groups);
  VariantChoice now_;  // from which the search goes on
  Nanoseconds time_ = Nanoseconds::max();
  std::optional<VariedAnswer> best_;
  Nanoseconds shortest_ = Nanoseconds::max();
};

}  // namespace

VariedAnswer plan_varied(const Planner& planner, const VariedStep& step, const StepOfChoice& make,
                         const Problem& like, const AskOptions& options) {
  return VariantSearch{planner, step, make, like, options}.find();
}

}  // namespace spillway::prefetch
