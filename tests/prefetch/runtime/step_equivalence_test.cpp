#include "tests/prefetch/runtime/step_equivalence.h"

#include <algorithm>

#include "tests/prefetch/runtime/copy_steps.h"
#include "um/host/managed/uffd_move.h"

namespace spillway::prefetch::testing {
namespace {

// A step gives the same bytes in every memory; the oracle is run_plainly().

RC_GTEST_PROP(ResidentStep, GivesWhatTheTasksGiveByThemselves, ()) {
  const TaskGraph graph = random_step();
  const Profile profile = random_profile(graph);
  Problem problem = random_step_problem(graph, profile);
  problem.budget = near_need(graph, BlockSizes{graph, kPage}).resident;
  const Plan plan = verified_plan(problem, "resident");
  RC_ASSERT(execute_resident(graph, plan).result == run_plainly(graph, kSteps));
}

// Avoids RapidCheck's macros, which do not support skipped tests.
class UffdMoveStep : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = um::probe_uffd_move()) GTEST_SKIP() << *reason;
  }
};

TEST_F(UffdMoveStep, GivesTheSameUnderAPlanWithoutAFault) {
  EXPECT_TRUE(rc::check([] { check_planned_managed(um::Paging::kUffdMove); }));
}

TEST_F(UffdMoveStep, GivesTheSameByPageFaultsAlone) {
  EXPECT_TRUE(rc::check([] { check_on_demand_managed(um::Paging::kUffdMove); }));
}

RC_GTEST_PROP(CopyStep, GivesTheSameUnderEveryPlanner, ()) {
  const TaskGraph graph = random_step();
  const Profile profile = random_profile(graph);
  Problem problem = random_step_problem(graph, profile);
  problem.whole_blocks = true;
  for (const char* planner : {"fractional", "on-demand"}) {
    const Plan plan = verified_plan(problem, planner);
    const Executed executed = execute_copy(graph, plan);
    RC_ASSERT(executed.result == run_plainly(graph, kSteps));
    RC_ASSERT(executed.peak <= peak_of(graph, plan));
  }
}

// Most random steps fit in their arena at fixed places; five runs at the end prevent that.
RC_GTEST_PROP(CopyStep, GivesTheSameWithPlacesAsTheyCome, ()) {
  TaskGraph graph = random_step();
  const um::Bytes pool = BlockSizes{graph, kPage}.pool(random_step_budget(graph));
  add_unplaceable_runs(graph, std::max<std::uint64_t>(4, pool / kPage));
  const Profile profile = random_profile(graph);
  Problem problem = random_step_problem(graph, profile);
  problem.budget = near_need(graph, BlockSizes{graph, kPage}).smallest;
  problem.whole_blocks = true;
  const Plan plan = verified_plan(problem, "fractional");
  const Executed executed = execute_copy(graph, plan);
  RC_ASSERT(!executed.has_fixed_places);
  RC_ASSERT(executed.compactions >= 2 * kSteps);
  RC_ASSERT(executed.result == run_plainly(graph, kSteps));
  RC_ASSERT(executed.peak <= peak_of(graph, plan));
}

// A chain of six layers with activations of four pages and 32 pages of tensors in total. With
// larger budgets there are fewer moves, and the bytes stay the same.
class ChainStep : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  [[nodiscard]] Plan plan(const std::string& planner, bool whole_blocks) const {
    Problem given = problem(graph_, profile_, pages(GetParam()));
    given.whole_blocks = whole_blocks;
    return planned(planner, given);
  }
  TaskGraph graph_ = chain(6, pages(4));
  Profile profile_ = flat_profile(graph_, um::Nanoseconds{1000});
};

TEST_P(ChainStep, GivesTheSameBytesInEveryMemory) {
  const ToyResult wanted = run_plainly(graph_, kSteps);
  const Plan whole = plan("fractional", true);
  EXPECT_FALSE(whole.offloads.empty());
  EXPECT_EQ(execute_copy(graph_, whole).result, wanted);
  if (um::probe_uffd_move()) GTEST_SKIP() << *um::probe_uffd_move();
  const Executed planned =
      execute_managed(graph_, plan("fractional", false), um::Paging::kUffdMove);
  EXPECT_EQ(planned.result, wanted);
  EXPECT_EQ(planned.counters.faults, 0U);
  EXPECT_GT(planned.counters.bytes_prefetched, um::Bytes{});
  const Executed faulting =
      execute_managed(graph_, plan("on-demand", false), um::Paging::kUffdMove);
  EXPECT_EQ(faulting.result, wanted);
  EXPECT_GT(faulting.counters.evictions, 0U);
}

// Largest task: backward, four blocks = 16 pages. Resident: seven activations and two gradients at
// the end of the chain, more than 28 pages.
INSTANTIATE_TEST_SUITE_P(Budgets, ChainStep, ::testing::Values(16, 20, 24, 28));

}  // namespace
}  // namespace spillway::prefetch::testing
