#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/planners/catalogue.h"
#include "prefetch/verify/verify.h"
#include "um/error.h"

namespace spillway::prefetch::testing {

/// The plan of the planner of that name, which must find one.
inline Plan planned(std::string_view planner, const Problem& given) {
  return std::get<Plan>(find_planner(planner).plan(given));
}

/// What that planner says instead, which must find none.
inline Infeasible refused(std::string_view planner, const Problem& given) {
  return std::get<Infeasible>(find_planner(planner).plan(given));
}

/// A plan; where the planner finds the budget too small, for the smallest that it names, which
/// becomes that of `given`.
inline Plan planned_with_more(const Planner& planner, Problem& given) {
  auto result = planner.plan(given);
  if (const auto* infeasible = std::get_if<Infeasible>(&result)) {
    um::expects(infeasible->smallest_budget > given.budget, "a planner that asks for more");
    given.budget = infeasible->smallest_budget;
    result = planner.plan(given);
  }
  return std::get<Plan>(std::move(result));
}

/// Why verify() refuses the plan; "" where it does not.
inline std::string reason_against(const TaskGraph& graph, const Plan& plan) {
  const auto verdict = verify(graph, plan);
  const auto* violation = std::get_if<Violation>(&verdict);
  return violation != nullptr ? violation->reason : "";
}

/// What is moved, in order: "y0 y1".
inline std::string names(const TaskGraph& graph, const std::vector<Move>& moves) {
  std::string result;
  for (const Move& move : moves) result += (result.empty() ? "" : " ") + graph[move.data].name;
  return result;
}

}  // namespace spillway::prefetch::testing
