#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include "prefetch/bounds/bounds.h"
#include "prefetch/planners/joint/joint_search.h"
#include "prefetch/planners/joint/neighbourhood.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

Plan joint_plan(const Problem& problem) { return planned("joint", problem); }

// Eight layers in a pool of 14 pages, eight less than the peak, with a link of 41 us per page.
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

// Four blocks of two pages, or their inputs, must be recomputed: at least four tasks of 100 ns, and
// no moves.
TEST_F(JointOnASlowLink, RunsTasksAgainInsteadOfMoving) {
  const Plan plan = joint_plan(tight(true));
  EXPECT_TRUE(plan.offloads.empty());
  EXPECT_EQ(plan.runs.size(), graph.tasks.size() + 4);
  EXPECT_EQ(reason_against(graph, plan), "");
}

TEST_F(JointOnASlowLink, MovesWhenItMayNotRecompute) {
  const Plan plan = joint_plan(tight(false));
  EXPECT_EQ(plan.runs.size(), graph.tasks.size());
  EXPECT_FALSE(plan.offloads.empty());
}

TEST_F(JointOnASlowLink, GivesTheSamePlanWhateverTheNumberOfThreads) {
  const Plan parallel = joint_plan(tight(true));
  const tbb::global_control one{tbb::global_control::max_allowed_parallelism, 1};
  EXPECT_EQ(joint_plan(tight(true)), parallel);
}

TEST_F(JointOnASlowLink, LooksNoFurtherThanItsLimit) {
  const auto hasty = joint_search(tight(true), {.evaluations = 0});
  ASSERT_TRUE(hasty);
  EXPECT_EQ(hasty->plan.runs.size(), graph.tasks.size());  // the start, which only moves
}

// If moves cause no stalls, moving is optimal.
TEST(Joint, MovesWhereTheLinkHasTime) {
  const TaskGraph graph = chain(8, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  Problem given = problem(graph, profile, pages(14));
  given.may_recompute = true;
  const Plan plan = joint_plan(given);
  EXPECT_EQ(plan.runs.size(), graph.tasks.size());
  EXPECT_EQ(simulate(plan, profile).makespan(), compute_time(profile, plan.runs));
}

// Returns the names of blocks in each group, in the order of the groups.
std::vector<std::vector<std::string>> alike_names(const TaskGraph& graph, const Profile& profile) {
  Problem given = problem(graph, profile, pages(8));
  given.may_recompute = true;
  const DecisionSpace space{given};
  std::vector<std::vector<std::string>> result;
  for (const Group& group : alike_blocks(space, given)) {
    result.emplace_back();
    for (const std::uint32_t i : group) {
      result.back().push_back(graph[space.droppable()[i].data].name);
    }
  }
  return result;
}

using AlikeNames = std::vector<std::vector<std::string>>;

// Tasks load, f1 to f8. Only one task precedes f1.
TEST(AlikeBlocks, AreMadeAmidTasksOfTheSameTime) {
  const TaskGraph graph = chain(8, pages(2));
  Profile profile = flat_profile(graph, 100ns);
  EXPECT_EQ(alike_names(graph, profile), (AlikeNames{{"y2", "y3", "y4", "y5", "y6", "y7", "y8"}}));
  profile.durations[3] = {200ns};  // of f3, not far from f2, f4 and f5
  EXPECT_EQ(alike_names(graph, profile), (AlikeNames{{"y6", "y7", "y8"}}));
}

TEST(AlikeIntervals, AreAlikeAtBothEnds) {
  const TaskGraph graph = chain(8, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  const Problem given = problem(graph, profile, pages(8));
  const DecisionSpace space{given};
  const std::vector<Group> groups = alike_intervals(space, given);
  ASSERT_FALSE(groups.empty());
  for (const std::uint32_t i : groups.front()) EXPECT_LT(i, space.intervals().size());
  EXPECT_GT(groups.front().size(), 1);
}

}  // namespace
}  // namespace spillway::prefetch
