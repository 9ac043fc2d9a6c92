#include "prefetch/planners/chain/greedy.h"

#include <gtest/gtest.h>

#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

std::vector<std::string> names(const TaskGraph& graph, const std::vector<Move>& moves) {
  std::vector<std::string> result;
  result.reserve(moves.size());
  for (const Move& move : moves) result.push_back(graph[move.data].name);
  return result;
}

// A chain of four layers with blocks of 2 pages: the peak, 14 pages, is b4 with y0..y4, d4, d3.
TEST(Greedy, OffloadsTheFirstActivationsAndBringsThemBackInReverse) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const auto moved = [&](std::uint64_t pool) {
    const Plan plan = std::get<Plan>(Greedy{}.plan(problem(graph, profile, pages(pool))));
    return std::pair{names(graph, plan.offloads), names(graph, plan.prefetches)};
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(moved(14), std::pair(Names{}, Names{}));
  // Smallest k with 2 k >= 14 - M.
  EXPECT_EQ(moved(13), std::pair(Names{"y0"}, Names{"y0"}));
  EXPECT_EQ(moved(12), std::pair(Names{"y0"}, Names{"y0"}));
  EXPECT_EQ(moved(11), std::pair(Names{"y0", "y1"}, Names{"y1", "y0"}));
  EXPECT_EQ(moved(8), std::pair(Names{"y0", "y1", "y2"}, Names{"y2", "y1", "y0"}));
}

TEST(Greedy, NamesTheSmallestBudgetWithAllActivationsFar) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const auto result = Greedy{}.plan(problem(graph, profile, pages(7)));
  ASSERT_TRUE(std::holds_alternative<Infeasible>(result));
  // b4 needs y3, y4, d4 and d3.
  EXPECT_EQ(std::get<Infeasible>(result).smallest_budget, problem(graph, profile, pages(8)).budget);
  EXPECT_EQ(graph[std::get<Infeasible>(result).task].name, "b4");
}

// y0 is read by f1 and again by f4, so it cannot be away at the peak of the forward pass, f4 with
// y0, y3, y4 and y1, y2: k is raised to 2 although y0 alone is 2 pages. A pool of 12 suffices for
// the backward pass with one block away.
TEST(Greedy, RaisesKWhereAnEarlyBlockIsInUseAtThePeak) {
  TaskGraph graph = chain(4, pages(2));
  graph.tasks[4].reads.push_back(graph.tasks[0].writes[0]);  // f4 reads y0
  graph.tasks[4].algorithms = {{.workspace = pages(4)}};     // so that f4 is the peak: 14
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = std::get<Plan>(Greedy{}.plan(problem(graph, profile, pages(12))));
  const std::vector<std::string> offloaded = names(graph, plan.offloads);
  EXPECT_EQ(std::ranges::count(offloaded, "y1"), 1);
}

// Pool 12: y0 leaves while f2 runs and is back for b1. One page takes 10 ns, nothing waits.
TEST(Greedy, HidesTheMovesBehindTheTasks) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = std::get<Plan>(Greedy{}.plan(problem(graph, profile, pages(12))));
  EXPECT_EQ(simulate(plan, profile).makespan(), 1000ns);
}

}  // namespace
}  // namespace spillway::prefetch
