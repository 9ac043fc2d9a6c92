#include "prefetch/planners/chain/dynprog.h"

#include <gtest/gtest.h>

#include "prefetch/planners/chain/greedy.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

um::Nanoseconds makespan(const Planner& planner, const Problem& given) {
  return simulate(std::get<Plan>(planner.plan(given)), given.profile).makespan();
}

// y0 has 8 pages, the others 2, and b4 needs 2 pages more than there are: greedy must offload y0, 8
// pages each way, dynprog offloads one of 2 pages. A page takes 200 ns.
TEST(DynProg, OffloadsASmallActivationWhereGreedyTakesTheFirst) {
  TaskGraph graph = chain(4, pages(2));
  graph.data[0].size = pages(8);
  Profile profile = flat_profile(graph, 100ns);
  const um::Bandwidth rate{static_cast<double>(kPage.count()) / 200e-9};
  profile.link = {.offload = rate, .prefetch = rate};
  const Problem given = problem(graph, profile, pages(18));
  const Plan plan = std::get<Plan>(DynProg{}.plan(given));
  ASSERT_EQ(plan.offloads.size(), 1U);
  EXPECT_EQ(plan.offloads[0].size, pages(2));
  // Greedy: y0 leaves from 200 to 1800, b4 (600 without waiting) runs until 1900; y0 comes back
  // when b3 needs less, at the earliest after b4: until 3500, then b1.
  EXPECT_EQ(makespan(Greedy{}, given), 3600ns);
  EXPECT_LE(makespan(DynProg{}, given), 1800ns);
}

TEST(DynProg, MovesNothingWhereEverythingFits) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = std::get<Plan>(DynProg{}.plan(problem(graph, profile, pages(14))));
  EXPECT_TRUE(plan.offloads.empty());
}

TEST(DynProg, NamesTheSmallestBudgetWithAllActivationsFar) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const auto result = DynProg{}.plan(problem(graph, profile, pages(7)));
  ASSERT_TRUE(std::holds_alternative<Infeasible>(result));
  EXPECT_EQ(std::get<Infeasible>(result).smallest_budget, problem(graph, profile, pages(8)).budget);
}

}  // namespace
}  // namespace spillway::prefetch
