#include <gtest/gtest.h>

#include "prefetch/planners/joint/neighbourhood.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

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
