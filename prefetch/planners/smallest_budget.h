#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "prefetch/planner.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// The candidates of a search: `always` plus any number of pages.
struct BudgetSearch {
  um::Bytes always;   ///< near under any plan
  um::Bytes page;     ///< step size of budgets
  um::Bytes refused;  ///< a budget that does not work
  um::Bytes claimed;  ///< presumably the smallest that works
};

/// Returns a budget of `search` above the refused one that works, while one page less does not;
/// nullopt if none works. It is one of several local minima if larger budgets than it are refused.
/// Complexity: two calls of `works` if the claim is right, otherwise the logarithm of its error in
/// pages.
[[nodiscard]] std::optional<um::Bytes> find_smallest(const BudgetSearch& search,
                                                     const std::function<bool(um::Bytes)>& works);

/// True for planners that always have a plan from near_need().smallest on.
[[nodiscard]] bool keeps_every_feasible_budget(std::string_view planner);

/// True when the planner has a plan for the problem's graph within `budget`, and it verifies.
[[nodiscard]] bool has_plan(const Planner& planner, Problem problem, um::Bytes budget);

/// Returns the smallest budget with which `planner`, which has answered `refusal` to `problem`, has
/// a verified plan: with one page less it has none. `refusal` names what the planner's rules need;
/// rules that depend on the budget, or on times, may need more or less. Complexity: as
/// find_smallest(), with a plan per call.
[[nodiscard]] Infeasible smallest_budget(const Planner& planner, const Problem& problem,
                                         const Infeasible& refusal);

}  // namespace spillway::prefetch
