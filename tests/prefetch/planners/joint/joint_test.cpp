#include "prefetch/planners/joint/joint.h"

#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include "prefetch/bounds/bounds.h"
#include "prefetch/planners/fractional.h"
#include "prefetch/planners/joint/joint_search.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

Plan plan_for(const Problem& problem) { return std::get<Plan>(Joint{}.plan(problem)); }

// Eight layers in a pool of 14 pages, eight less than the peak, and a link of 41 us a page.
class JointOnASlowLink : public ::testing::Test {
 protected:
  JointOnASlowLink() {
    profile.link = {.offload = um::Bandwidth{1e8}, .prefetch = um::Bandwidth{1e8}};
  }
  [[nodiscard]] Problem tight(bool may_recompute) const {
    Problem given = problem(graph, profile, pages(14));
    given.may_recompute = may_recompute;
    return given;
  }
  TaskGraph graph = chain(8, pages(2));
  Profile profile = flat_profile(graph, 100ns);
};

// Four blocks of two pages must be made again, or what they are made from: four tasks of 100 ns at
// least, and no move.
TEST_F(JointOnASlowLink, RunsTasksAgainInsteadOfMoving) {
  const Plan plan = plan_for(tight(true));
  EXPECT_TRUE(plan.offloads.empty());
  EXPECT_EQ(plan.runs.size(), graph.tasks.size() + 4);
  EXPECT_TRUE(std::holds_alternative<Verified>(verify(graph, plan)));
}

TEST_F(JointOnASlowLink, MovesWhenItMayNotRecompute) {
  const Plan plan = plan_for(tight(false));
  EXPECT_EQ(plan.runs.size(), graph.tasks.size());
  EXPECT_FALSE(plan.offloads.empty());
}

TEST_F(JointOnASlowLink, GivesTheSamePlanWhateverTheNumberOfThreads) {
  const Plan parallel = plan_for(tight(true));
  const tbb::global_control one{tbb::global_control::max_allowed_parallelism, 1};
  EXPECT_EQ(plan_for(tight(true)), parallel);
}

TEST_F(JointOnASlowLink, LooksNoFurtherThanItsLimit) {
  const auto hasty = joint_search(tight(true), {.evaluations = 0});
  ASSERT_TRUE(hasty);
  EXPECT_EQ(hasty->plan.runs.size(), graph.tasks.size());  // the start, which only moves
}

// Where moves are free of stalls nothing is better than to move.
TEST(Joint, MovesWhereTheLinkHasTime) {
  const TaskGraph graph = chain(8, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  Problem given = problem(graph, profile, pages(14));
  given.may_recompute = true;
  const Plan plan = plan_for(given);
  EXPECT_EQ(plan.runs.size(), graph.tasks.size());
  EXPECT_EQ(simulate(plan, profile).makespan(), compute_time(profile, plan.runs));
}

// f3's fast algorithm saves 40 of 100 ns and pushes out six pages of workspace: on the toy link,
// 10 ns a page, these leave in time; on one of 4 us a page they do not.
TEST(Joint, TakesAFastAlgorithmOnlyWhereItsWorkspacePays) {
  TaskGraph graph = chain(4, pages(2));
  graph.tasks[3].algorithms = {{.name = "slow"}, {.name = "fast", .workspace = pages(6)}};
  Profile profile = flat_profile(graph, 100ns);
  profile.durations[3] = {100ns, 60ns};
  EXPECT_EQ(plan_for(problem(graph, profile, pages(14))).runs[3].algorithm, 1U);
  profile.durations[3] = {100ns, 99ns};
  profile.link = {.offload = um::Bandwidth{1e9}, .prefetch = um::Bandwidth{1e9}};
  EXPECT_EQ(plan_for(problem(graph, profile, pages(10))).runs[3].algorithm, 0U);
}

TEST(Joint, SaysWhatTheSmallestBudgetIs) {
  const TaskGraph graph = chain(4, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const auto result = Joint{}.plan(problem(graph, profile, pages(7)));
  ASSERT_TRUE(std::holds_alternative<Infeasible>(result));
  EXPECT_EQ(std::get<Infeasible>(result).smallest_budget, pages(8));
  EXPECT_EQ(plan_for(problem(graph, profile, pages(8))).budget, pages(8));
}

}  // namespace
}  // namespace spillway::prefetch
