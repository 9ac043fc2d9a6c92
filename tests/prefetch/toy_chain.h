#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// A chain of four layers: load 0, f1..f4 1..4, loss 5, b4..b1 6..9. Tasks take 100 ns; a block has
/// two pages and takes 20 ns each way. f(i) and b(i) read y(i-1). The resident peak is 14 pages, at
/// b4: y0..y4, d4, d3.
class ToyChain : public ::testing::Test {
 protected:
  [[nodiscard]] Problem with_pool(std::uint64_t pool) const {
    return problem(graph, profile, pages(pool));
  }
  [[nodiscard]] Plan plan_with(std::string_view planner, std::uint64_t pool) const {
    return planned(planner, with_pool(pool));
  }
  [[nodiscard]] Infeasible refusal_of(std::string_view planner, std::uint64_t pool) const {
    return refused(planner, with_pool(pool));
  }
  [[nodiscard]] std::string names(const std::vector<Move>& moves) const {
    return testing::names(graph, moves);
  }
  [[nodiscard]] um::Nanoseconds makespan(const Plan& plan) const {
    return simulate(plan, profile).makespan();
  }
  /// Gives one task a second algorithm, which takes `duration` instead of 100 ns.
  void give_fast_algorithm(std::size_t task, um::Bytes workspace, um::Nanoseconds duration) {
    graph.tasks[task].algorithms = {{.name = "slow"}, {.name = "fast", .workspace = workspace}};
    profile.durations[task] = {um::Nanoseconds{100}, duration};
    profile.graph = fingerprint(graph);
  }

  TaskGraph graph = chain(4, pages(2));
  Profile profile = flat_profile(graph, um::Nanoseconds{100});
};

/// ToyChain with a link on which a block takes 150 ns each way; tests derive planners' results by
/// hand.
class DrawnChain : public ToyChain {
 protected:
  DrawnChain() { profile.link = toy_link(um::Nanoseconds{75}); }
  static Interval interval(int begin, int end) {
    return {um::Nanoseconds{begin}, um::Nanoseconds{end}};
  }
};

/// DrawnChain with a y0 of one page and a y1 of four.
class UnevenChain : public DrawnChain {
 protected:
  UnevenChain() {
    graph.data[0].size = pages(1);
    graph.data[1].size = pages(4);
    profile.graph = fingerprint(graph);
  }
};

}  // namespace spillway::prefetch::testing
