#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "prefetch/planner.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// Budgets that a search may name: `always` and any number of pages.
struct BudgetSearch {
  um::Bytes always;   ///< what is near whatever the plan
  um::Bytes page;     ///< what a pool grows by
  um::Bytes refused;  ///< a budget that does not work
  um::Bytes claimed;  ///< one that is thought to be the smallest that does
};

/// A budget of `search` that works, above the refused one, of which one page less does not; nothing
/// where none works. Where budgets above one that works may be refused, it is a smallest one of
/// several. Complexity: two calls of `works` where the claim is right, else the logarithm of how
/// many pages it is wrong by.
[[nodiscard]] std::optional<um::Bytes> find_smallest(const BudgetSearch& search,
                                                     const std::function<bool(um::Bytes)>& works);

/// True for planners that have a plan from near_need().smallest on, with no more to find out.
[[nodiscard]] bool keeps_every_feasible_budget(std::string_view planner);

/// True when the planner has a plan for the problem's graph within `budget`, and it verifies.
[[nodiscard]] bool has_plan(const Planner& planner, Problem problem, um::Bytes budget);

/// The smallest budget with which `planner`, which has answered `refusal` to `problem`, has a plan
/// that verifies: with one page less it has none. Planners say in `refusal` what their rules need;
/// rules that look at the budget, or at times, may need more, or less. Complexity: as
/// find_smallest(), and a plan for each call.
[[nodiscard]] Infeasible smallest_budget(const Planner& planner, const Problem& problem,
                                         const Infeasible& refusal);

}  // namespace spillway::prefetch
