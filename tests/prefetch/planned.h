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

/// Fails the test with the planner's name and its message.
[[noreturn]] inline void fail(const Planner& planner, const std::string& says) {
  throw std::runtime_error{"planner " + std::string{planner.name()} + ": " + says};
}

/// Returns the planner's plan. Throws: std::runtime_error with the planner's refusal.
inline Plan plan_of(const Planner& planner, const Problem& given) {
  auto result = planner.plan(given);
  if (const auto* infeasible = std::get_if<Infeasible>(&result)) {
    fail(planner, to_string(*infeasible, given.graph, given.budget));
  }
  return std::get<Plan>(std::move(result));
}

/// Returns the plan of the named planner, which must find one.
inline Plan planned(std::string_view planner, const Problem& given) {
  return plan_of(find_planner(planner), given);
}

/// Returns the refusal of the named planner, which must not find a plan.
inline Infeasible refused(std::string_view name, const Problem& given) {
  const Planner& planner = find_planner(name);
  const auto result = planner.plan(given);
  if (std::holds_alternative<Plan>(result)) {
    fail(planner, "has a plan for a budget of " + um::to_string(given.budget));
  }
  return std::get<Infeasible>(result);
}

/// Returns a plan. If the planner finds the budget of `given` too small, raises it to the smallest
/// budget that it names.
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

/// Returns the reason why verify() refuses the plan; "" if it accepts it.
inline std::string reason_against(const TaskGraph& graph, const Plan& plan) {
  const auto verdict = verify(graph, plan);
  const auto* violation = std::get_if<Violation>(&verdict);
  return violation != nullptr ? violation->reason : "";
}

/// Returns the moved blocks, in order: "y0 y1".
inline std::string names(const TaskGraph& graph, const std::vector<Move>& moves) {
  std::string result;
  for (const Move& move : moves) result += (result.empty() ? "" : " ") + graph[move.data].name;
  return result;
}

}  // namespace spillway::prefetch::testing
