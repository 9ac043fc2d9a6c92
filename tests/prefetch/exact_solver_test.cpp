#include "tests/prefetch/exact_solver.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "prefetch/bounds/bounds.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// chain(2) with blocks of 2 pages and tasks of 100 ns: load, f1, f2, loss, b2, b1. b2 needs y0, y1,
// y2, d2, d1 = 10 pages. In a pool of 8 y0, which b2 does not read, must be away then, and can come
// back only after b2. A page takes 50 ns each way, so y0 takes 100.
TEST(ExactSolver, WaitsForThePrefetchThatNothingHides) {
  const TaskGraph graph = chain(2, pages(2));
  const Profile profile = flat_profile(graph, 100ns, 50ns);
  // y0 leaves during f2; after b2 (500 ns) it returns until 600, and b1 ends at 700.
  EXPECT_EQ(ExactSolver{problem(graph, profile, pages(8))}.solve(), 700ns);
  EXPECT_EQ(ExactSolver{problem(graph, profile, pages(10))}.solve(), 600ns);
  EXPECT_EQ(ExactSolver{problem(graph, profile, pages(7))}.solve(), std::nullopt);
}

// With 200 ns a page y0 takes 400. Its last reader f1 ends at 200, so it leaves until 600, and b2,
// which could start at 400, ends at 700. y0 is back at 1100, b1 ends at 1200. If copied while f1
// reads it, y0 leaves from 100 to 500: 100 ns less.
TEST(ExactSolver, CopiesABlockOutWhileItIsReadWhereTheLinkCan) {
  const TaskGraph graph = chain(2, pages(2));
  Profile profile = flat_profile(graph, 100ns, 200ns);
  const Problem given = problem(graph, profile, pages(8));
  EXPECT_EQ(ExactSolver{given}.solve(), 1200ns);
  profile.link.copies_while_read = true;
  EXPECT_EQ(ExactSolver{given}.solve(), 1100ns);
}

// Up to five layers, sometimes six; up to three if a layer may save two blocks.
TaskGraph tiny_chain() {
  if (*rc::gen::inRange(0, 4) == 0) return random_chain(3);
  return random_chain(*rc::gen::inRange(0, 10) == 0 ? 6 : 5, false);
}

Problem tiny_problem(const TaskGraph& graph, const Profile& profile) {
  return {.graph = graph,
          .profile = profile,
          .budget = random_budget(graph),
          .page = kPage,
          .chunk = pages(1)};
}

// Moving parts of a page may cost one page in flight when a better one could start, in each
// direction, and each move's time is rounded to a nanosecond.
um::Nanoseconds paging_costs(const Plan& plan, const Profile& profile) {
  const auto moves = static_cast<std::int64_t>(plan.offloads.size() + plan.prefetches.size());
  return moves * 1ns + kPage / profile.link.offload + kPage / profile.link.prefetch;
}

RC_GTEST_PROP(TheOptimumOfATinyChain, IsBetweenBoundsAndPlans, ()) {
  const TaskGraph graph = tiny_chain();
  const Profile profile = random_profile(graph);
  const Problem given = tiny_problem(graph, profile);
  const auto optimum = ExactSolver{given}.solve();
  RC_ASSERT(optimum.has_value());
  const Bounds bounds = lower_bounds(given);
  RC_ASSERT(bounds.beaumont <= *optimum);
  RC_ASSERT(bounds.offload_transition <= *optimum);
  for (const std::string name : {"greedy", "dynprog"}) {
    const Plan plan = planned(name, given);
    RC_ASSERT(simulate(plan, profile).makespan() >= *optimum);
  }
}

// Moves have no latency.
RC_GTEST_PROP(TheOptimumOfATinyChain, IsReachedByPagesUpToOneEachWay, ()) {
  const TaskGraph graph = tiny_chain();
  Profile profile = random_profile(graph);
  profile.link.latency = 0ns;
  const Problem given = tiny_problem(graph, profile);
  const auto optimum = ExactSolver{given}.solve();
  RC_ASSERT(optimum.has_value());
  const Plan paged = planned("fractional", given);
  RC_ASSERT(simulate(paged, profile).makespan() <= *optimum + paging_costs(paged, profile));
}

// A plan is made for the moves without their latency, which then adds to each move, and to nothing
// else.
RC_GTEST_PROP(Latency, DelaysAStepByNoMoreThanItsMovesPay, ()) {
  const TaskGraph graph = tiny_chain();
  Profile profile = random_profile(graph);
  const um::Nanoseconds latency{100 * *rc::gen::inRange(1, 20)};
  profile.link.latency = 0ns;
  const Plan plan = planned("fractional", tiny_problem(graph, profile));
  const um::Nanoseconds without = simulate(plan, profile).makespan();
  profile.link.latency = latency;
  const auto moves = static_cast<std::int64_t>(plan.offloads.size() + plan.prefetches.size());
  const um::Nanoseconds with = simulate(plan, profile).makespan();
  RC_ASSERT(with >= without);
  RC_ASSERT(with <= without + moves * latency);
}

// two_layers() in a pool of 8: the two pages of y0 leave together, hidden, from 200 to 310 ns, and
// return together from 500 to 610. As two moves of a page they would return until 620.
TEST(Latency, IsPaidOnceForChunksThatMoveTogether) {
  const TaskGraph graph = chain(2, pages(2));
  Profile profile = flat_profile(graph, 100ns, 50ns);
  Problem given = problem(graph, profile, pages(8));
  given.chunk = pages(1);
  profile.link.latency = 10ns;
  EXPECT_EQ(ExactSolver{given}.solve(), 710ns);
  const Plan paged = planned("fractional", given);
  EXPECT_EQ(simulate(paged, profile).makespan(), 710ns);
}

}  // namespace
}  // namespace spillway::prefetch
