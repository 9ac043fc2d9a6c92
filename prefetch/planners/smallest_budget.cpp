#include "prefetch/planners/smallest_budget.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <variant>

#include "prefetch/block_sizes.h"
#include "prefetch/verify/verify.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;

// Counts budgets in pages above `search.always`; -1 is below all of them.
class PageSearch {
 public:
  PageSearch(const BudgetSearch& search, const std::function<bool(Bytes)>& works)
      : search_{search}, works_{works} {
    if (search.refused >= search.always) {
      fails_ = static_cast<std::int64_t>((search.refused - search.always) / search.page);
    }
    const Bytes pool = um::saturating_difference(search.claimed, search.always);
    succeeds_ = std::max(fails_ + 1,
                         static_cast<std::int64_t>(um::round_up(pool, search.page) / search.page));
  }

  std::optional<Bytes> find() {
    if (works(succeeds_)) {
      go_down();
    } else if (!go_up()) {
      return std::nullopt;
    }
    while (succeeds_ - fails_ > 1) {
      const std::int64_t middle = fails_ + (succeeds_ - fails_) / 2;
      (works(middle) ? succeeds_ : fails_) = middle;
    }
    return budget(succeeds_);
  }

 private:
  [[nodiscard]] Bytes budget(std::int64_t pages) const {
    return search_.always + static_cast<std::uint64_t>(pages) * search_.page;
  }
  [[nodiscard]] bool works(std::int64_t pages) const { return works_(budget(pages)); }

  void go_down() {
    for (std::int64_t step = 1; succeeds_ - step > fails_; step *= 2) {
      if (!works(succeeds_ - step)) {
        fails_ = succeeds_ - step;
        return;
      }
      succeeds_ -= step;
    }
  }

  bool go_up() {
    const auto most = static_cast<std::int64_t>((std::uint64_t{1} << 50U) / search_.page.count());
    for (std::int64_t step = 1; succeeds_ < most; step *= 2) {
      fails_ = succeeds_;
      succeeds_ += step;
      if (works(succeeds_)) return true;
    }
    return false;
  }

  const BudgetSearch& search_;
  const std::function<bool(Bytes)>& works_;
  std::int64_t fails_ = -1;
  std::int64_t succeeds_ = 0;
};

}  // namespace

std::optional<Bytes> find_smallest(const BudgetSearch& search,
                                   const std::function<bool(Bytes)>& works) {
  return PageSearch{search, works}.find();
}

bool keeps_every_feasible_budget(std::string_view planner) {
  constexpr std::array<std::string_view, 4> kNames{"capacity", "fractional", "joint", "on-demand"};
  return std::ranges::find(kNames, planner) != kNames.end();
}

bool has_plan(const Planner& planner, Problem problem, Bytes budget) {
  problem.budget = budget;
  const auto planned = planner.plan(problem);
  const auto* const plan = std::get_if<Plan>(&planned);
  return plan != nullptr && std::holds_alternative<Verified>(verify(problem.graph, *plan));
}

Infeasible smallest_budget(const Planner& planner, const Problem& problem,
                           const Infeasible& refusal) {
  if (keeps_every_feasible_budget(planner.name())) return refusal;
  const auto found =
      find_smallest({.always = BlockSizes{problem.graph, problem.page}.pinned(),
                     .page = problem.page,
                     .refused = problem.budget,
                     .claimed = refusal.smallest_budget},
                    [&](Bytes budget) { return has_plan(planner, problem, budget); });
  return {.task = refusal.task, .smallest_budget = found.value_or(refusal.smallest_budget)};
}

}  // namespace spillway::prefetch
