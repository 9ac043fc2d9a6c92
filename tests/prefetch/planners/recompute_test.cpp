#include <gtest/gtest.h>

#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// A chain of four layers with blocks of 2 pages: the peak, 14 pages, is b4.
Problem four_layers(const TaskGraph& graph, const Profile& profile, std::uint64_t pool) {
  Problem given = problem(graph, profile, pages(pool));
  given.may_recompute = true;
  return given;
}

std::vector<std::string> recomputed(const TaskGraph& graph, const Plan& plan) {
  std::vector<std::string> names;
  for (const TaskRun& run : plan.runs) {
    if (run.is_recomputation) names.push_back(graph[run.task].name);
  }
  return names;
}

// b4 exceeds the pool by 2 pages: y1 or y2, which b4 does not read, is dropped; one rerun suffices.
TEST(Recompute, DropsNoMoreThanItMust) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = planned("recompute", four_layers(graph, profile, 12));
  EXPECT_TRUE(plan.offloads.empty());
  EXPECT_EQ(recomputed(graph, plan).size(), 1U);
  EXPECT_EQ(reason_against(graph, plan), "");
  const Plan whole = planned("recompute", four_layers(graph, profile, 14));
  EXPECT_TRUE(recomputed(graph, whole).empty());
}

TEST(Recompute, TakesTheCheaperOfTwoEqualBlocks) {
  const TaskGraph graph = chain(4, pages(2));
  Profile profile = flat_profile(graph, 100ns);
  profile.durations[3] = {40ns};  // f3, which makes y3: b4 reads it
  profile.durations[2] = {60ns};  // f2, which makes y2
  const Plan plan = planned("recompute", four_layers(graph, profile, 12));
  EXPECT_EQ(recomputed(graph, plan), (std::vector<std::string>{"f2"}));
}

TEST(Recompute, NamesABudgetThatWorksWhereItFindsNone) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  Problem given = four_layers(graph, profile, 5);
  given.budget = refused("recompute", given).smallest_budget;
  EXPECT_TRUE(std::holds_alternative<Plan>(find_planner("recompute").plan(given)));
  // y0 stays, since load is not recomputable; with y1, y2, y3 dropped b4 still needs y0, y3, y4,
  // d4, d3.
  EXPECT_LE(given.budget, four_layers(graph, profile, 12).budget);
}

TEST(Recompute, RunsFastAlgorithmsInTheRoomThatIsLeft) {
  TaskGraph graph = chain(4, pages(2));
  graph.tasks[1].algorithms = {{}, {.name = "fast", .workspace = pages(8)}};  // f1: y0, y1 live
  graph.tasks[4].algorithms = {{}, {.name = "fast", .workspace = pages(8)}};  // f4: y0 ... y4
  Profile profile = flat_profile(graph, 100ns);
  profile.durations[1] = profile.durations[4] = {100ns, 50ns};
  const Plan plan = planned("recompute", four_layers(graph, profile, 14));
  EXPECT_EQ(plan.runs[1].algorithm, 1U);  // 4 + 8 pages
  EXPECT_EQ(plan.runs[4].algorithm, 0U);  // 10 + 8 pages
}

}  // namespace
}  // namespace spillway::prefetch
