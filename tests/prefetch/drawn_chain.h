#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "prefetch/planner.h"
#include "prefetch/simulate/timeline.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// The chain on which planners are drawn by hand: load 0, f1..f4 1..4, loss 5, b4..b1 6..9. Tasks
/// take 100 ns, a block has two pages and takes 150 ns each way. f(i) reads y(i-1), b(i) reads it
/// again; the resident peak is 14 pages, at b4: y0..y4, d4, d3.
class DrawnChain : public ::testing::Test {
 protected:
  DrawnChain() {
    const um::Bandwidth page_in_75ns{static_cast<double>(kPage.count()) / 75e-9};
    profile.link = {.offload = page_in_75ns, .prefetch = page_in_75ns};
  }

  [[nodiscard]] Problem with_pool(std::uint64_t pool) const {
    return problem(graph, profile, pages(pool));
  }
  [[nodiscard]] Plan plan_with(const Planner& planner, std::uint64_t pool) const {
    return std::get<Plan>(planner.plan(with_pool(pool)));
  }
  [[nodiscard]] Infeasible refusal_of(const Planner& planner, std::uint64_t pool) const {
    return std::get<Infeasible>(planner.plan(with_pool(pool)));
  }
  [[nodiscard]] std::string names(const std::vector<Move>& moves) const {
    std::string result;
    for (const Move& move : moves) result += (result.empty() ? "" : " ") + graph[move.data].name;
    return result;
  }
  static Interval interval(int begin, int end) {
    return {um::Nanoseconds{begin}, um::Nanoseconds{end}};
  }

  TaskGraph graph = chain(4, pages(2));
  Profile profile = flat_profile(graph, um::Nanoseconds{100});
};

}  // namespace spillway::prefetch::testing
