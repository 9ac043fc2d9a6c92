#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/planners/catalogue.h"
#include "prefetch/verify/verify.h"
#include "um/bytes.h"

namespace spillway::prefetch::testing {

/// Fails the test with the planner's name and what it says of the problem.
[[noreturn]] inline void fail(const Planner& planner, const std::string& says) {
  throw std::runtime_error{"planner " + std::string{planner.name()} + ": " + says};
}

/// The planner's plan. Throws: std::runtime_error that has what the planner says instead of one.
inline Plan plan_of(const Planner& planner, const Problem& given) {
  auto result = planner.plan(given);
  if (const auto* infeasible = std::get_if<Infeasible>(&result)) {
    fail(planner, to_string(*infeasible, given.graph, given.budget));
  }
  return std::get<Plan>(std::move(result));
}

/// The plan of the planner of that name, which must find one.
inline Plan planned(std::string_view planner, const Problem& given) {
  return plan_of(find_planner(planner), given);
}

/// What that planner says instead, which must find none.
inline Infeasible refused(std::string_view name, const Problem& given) {
  const Planner& planner = find_planner(name);
  const auto result = planner.plan(given);
  if (std::holds_alternative<Plan>(result)) {
    fail(planner, "has a plan for a budget of " + um::to_string(given.budget));
  }
  return std::get<Infeasible>(result);
}

/// A plan; where the planner finds the budget too small, for the smallest that it names, which
/// becomes that of `given`.
inline Plan planned_with_more(const Planner& planner, Problem& given) {
  auto result = planner.plan(given);
  const auto* infeasible = std::get_if<Infeasible>(&result);
  if (infeasible == nullptr) return std::get<Plan>(std::move(result));
  if (infeasible->smallest_budget <= given.budget) {
    fail(planner, to_string(*infeasible, given.graph, given.budget));
  }
  given.budget = infeasible->smallest_budget;
  return plan_of(planner, given);
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
