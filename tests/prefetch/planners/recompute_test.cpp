#include <gtest/gtest.h>

#include "tests/prefetch/toy_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class Recompute : public ToyChain {
 protected:
  [[nodiscard]] Problem recomputing(std::uint64_t pool) const {
    Problem given = with_pool(pool);
    given.may_recompute = true;
    return given;
  }
  [[nodiscard]] Plan recomputing_plan(std::uint64_t pool) const {
    return planned("recompute", recomputing(pool));
  }
  // Returns the names of tasks that run again.
  [[nodiscard]] std::vector<std::string> recomputed(const Plan& plan) const {
    std::vector<std::string> names;
    for (const TaskRun& run : plan.runs) {
      if (run.is_recomputation) names.push_back(graph[run.task].name);
    }
    return names;
  }
};

// b4 exceeds the pool by 2 pages: y1 or y2, which b4 does not read, is dropped; one rerun suffices.
TEST_F(Recompute, DropsNoMoreThanItMust) {
  const Plan plan = recomputing_plan(12);
  EXPECT_TRUE(plan.offloads.empty());
  EXPECT_EQ(recomputed(plan).size(), 1U);
  EXPECT_EQ(reason_against(graph, plan), "");
  const Plan whole = recomputing_plan(14);
  EXPECT_TRUE(recomputed(whole).empty());
}

TEST_F(Recompute, TakesTheCheaperOfTwoEqualBlocks) {
  profile.durations[3] = {40ns};  // f3, which makes y3: b4 reads it
  profile.durations[2] = {60ns};  // f2, which makes y2
  const Plan plan = recomputing_plan(12);
  EXPECT_EQ(recomputed(plan), (std::vector<std::string>{"f2"}));
}

TEST_F(Recompute, NamesABudgetThatWorksWhereItFindsNone) {
  Problem given = recomputing(5);
  given.budget = refused("recompute", given).smallest_budget;
  EXPECT_TRUE(std::holds_alternative<Plan>(find_planner("recompute").plan(given)));
  // y0 stays, since load is not recomputable; with y1, y2, y3 dropped b4 still needs y0, y3, y4,
  // d4, d3.
  EXPECT_LE(given.budget, recomputing(12).budget);
}

TEST_F(Recompute, RunsFastAlgorithmsInTheRoomThatIsLeft) {
  give_fast_algorithm(1, pages(8), 50ns);  // f1: y0, y1 live
  give_fast_algorithm(4, pages(8), 50ns);  // f4: y0 ... y4
  const Plan plan = recomputing_plan(14);
  EXPECT_EQ(plan.runs[1].algorithm, 1U);  // 4 + 8 pages
  EXPECT_EQ(plan.runs[4].algorithm, 0U);  // 10 + 8 pages
}

}  // namespace
}  // namespace spillway::prefetch
