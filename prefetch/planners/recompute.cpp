#include "prefetch/planners/recompute.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "prefetch/decisions.h"
#include "prefetch/liveness.h"
#include "prefetch/occupancy.h"
#include "prefetch/recomputation.h"
#include "prefetch/resident_runs.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// A choice for each droppable block, and what it needs.
struct Choice {
  std::vector<Fate> fates;
  std::vector<TaskRun> runs;
  um::Nanoseconds time{0};
  Bytes peak;                 // of movable blocks
  std::size_t peak_runs = 0;  // how many runs need so much
  Position peak_at = 0;       // the first of them
};

bool needs_less(const Choice& a, const Choice& b) {
  return std::pair{a.peak, a.peak_runs} < std::pair{b.peak, b.peak_runs};
}

class Search {
 public:
  explicit Search(const Problem& problem)
      : problem_{problem},
        occupancy_{problem.graph, problem.page},
        inserter_{problem.graph},
        in_order_{runs_in_order(problem.graph)},
        order_{problem.may_recompute
                   ? find_recomputable(problem.graph, problem.profile, problem.page, in_order_)
                   : std::vector<Recomputable>{}},
        least_{evaluate(std::vector<Fate>(order_.size(), Fate::kKeep))} {}

  // Runs that fit, or the sequence that needs least.
  Choice find() {
    if (fits(least_)) return least_;
    auto best = best_prefix();
    if (!best) best = descend();
    return best ? keep_what_fits(*std::move(best)) : least_;
  }

  [[nodiscard]] bool fits(const Choice& choice) const {
    return occupancy_.always_near() + choice.peak <= problem_.budget;
  }

 private:
  [[nodiscard]] Choice evaluate(std::vector<Fate> fates) const {
    const std::vector<Dropped> dropped = dropped_blocks(order_, fates);
    Choice choice{.fates = std::move(fates), .runs = inserter_.insert(in_order_, dropped)};
    choice.time = compute_time(problem_.profile, choice.runs);
    const std::vector<Life> lives = find_lives(problem_.graph, choice.runs);
    const std::vector<Bytes> live = demand(problem_.graph, occupancy_, choice.runs, lives);
    const auto most = std::ranges::max_element(live);
    if (most == live.end()) return choice;
    choice.peak = *most;
    choice.peak_at = static_cast<Position>(most - live.begin());
    choice.peak_runs = static_cast<std::size_t>(std::ranges::count(live, *most));
    return choice;
  }

  std::optional<Choice> best_prefix() {
    constexpr std::size_t kGrid = 32;
    std::optional<Choice> best;
    for (const Fate fate : {Fate::kDrop, Fate::kDropPerUse}) {
      std::size_t previous = 0;
      for (std::size_t i = 1; i <= kGrid; ++i) {
        const std::size_t count = order_.size() * i / kGrid;
        if (std::exchange(previous, count) == count) continue;
        std::vector<Fate> fates(order_.size(), Fate::kKeep);
        std::fill_n(fates.begin(), count, fate);
        Choice choice = evaluate(std::move(fates));
        if (needs_less(choice, least_)) least_ = choice;
        if (fits(choice) && (!best || choice.time < best->time)) best = std::move(choice);
      }
    }
    return best;
  }

  // From the choice that needs least, lowers the peak until it fits.
  std::optional<Choice> descend() {
    evaluations_left_ = 512;
    while (!fits(least_)) {
      if (!lower_peak()) return std::nullopt;
    }
    return least_;
  }

  // The first change of a block's fate, among those live at the peak, with which less is needed.
  bool lower_peak() {
    const std::vector<bool> live = live_at_peak();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (!live[i] || least_.fates[i] == Fate::kDropPerUse) continue;
      if (evaluations_left_ == 0) return false;
      --evaluations_left_;
      std::vector<Fate> fates = least_.fates;
      fates[i] = fates[i] == Fate::kKeep ? Fate::kDrop : Fate::kDropPerUse;
      Choice choice = evaluate(std::move(fates));
      if (!needs_less(choice, least_)) continue;
      least_ = std::move(choice);
      return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<bool> live_at_peak() const {
    std::vector<bool> is_live(problem_.graph.data.size(), false);
    for (const Life& life : find_lives(problem_.graph, least_.runs)) {
      if (life.begin() <= least_.peak_at && least_.peak_at <= life.last()) {
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
      if (best.fates[i] != Fate::kKeep) expensive_first.push_back(i);
    }
    std::ranges::stable_sort(expensive_first, std::ranges::greater{},
                             [&](std::size_t i) { return order_[i].cost; });
    for (bool has_changed = true; has_changed && evaluations_left_ > 0;) {
      has_changed = false;
      for (const std::size_t i : expensive_first) {
        for (const Fate better : {Fate::kKeep, Fate::kDrop}) {
          if (better < best.fates[i]) has_changed |= improve(best, i, better);
        }
      }
    }
    return best;
  }

  bool improve(Choice& best, std::size_t block, Fate fate) {
    if (evaluations_left_ == 0) return false;
    --evaluations_left_;
    std::vector<Fate> fates = best.fates;
    fates[block] = fate;
    Choice choice = evaluate(std::move(fates));
    if (!fits(choice) || choice.time >= best.time) return false;
    best = std::move(choice);
    return true;
  }

  const Problem& problem_;
  Occupancy occupancy_;
  RecomputationInserter inserter_;
  std::vector<TaskRun> in_order_;
  std::vector<Recomputable> order_;  // cheapest per byte first
  Choice least_;                     // the one that needs least of all tried
  int evaluations_left_ = 0;
};

}  // namespace

std::variant<Plan, Infeasible> Recompute::plan(const Problem& problem) const {
  Search search{problem};
  Choice choice = search.find();
  if (!search.fits(choice)) return need_of(problem, choice.runs);
  Plan plan = plan_without_moves(problem, std::move(choice.runs));
  plan.planner = name();
  return plan;
}

}  // namespace spillway::prefetch
