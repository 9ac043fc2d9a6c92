#include "prefetch/stays.h"

#include <gtest/gtest.h>

#include "tests/prefetch/swapped_toy.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

struct FindStays : public ::testing::Test, public SwappedToy {};

TEST_F(FindStays, CutsALifeWhereTheBlockIsAway) {
  const std::vector<Stay> stays = find_stays(graph, plan);
  ASSERT_EQ(stays.size(), 4U);  // a, b, the workspace, a again
  EXPECT_EQ(stays[0].data, a);
  EXPECT_FALSE(stays[0].is_prefetched);
  EXPECT_TRUE(stays[0].is_offloaded);
  EXPECT_EQ(stays[0].first, 0U);
  EXPECT_EQ(stays[0].last, 0U);
  EXPECT_EQ(stays[3].data, a);
  EXPECT_TRUE(stays[3].is_prefetched);
  EXPECT_FALSE(stays[3].is_offloaded);
  EXPECT_EQ(stays[3].first, 0U);
  EXPECT_EQ(stays[3].last, 2U);
}

TEST_F(FindStays, GivesWorkspacesTheirRun) {
  const std::vector<Stay> stays = find_stays(graph, plan);
  EXPECT_EQ(stays[1].data, b);
  EXPECT_FALSE(stays[1].is_workspace);
  EXPECT_TRUE(stays[2].is_workspace);
  EXPECT_EQ(stays[2].size, pages(1));
  EXPECT_EQ(stays[2].first, 1U);
  EXPECT_EQ(stays[2].last, 1U);
}

// A page of 16 KiB: "a", 9 KiB, takes one in the plan but three of 4 KiB in the arena; "b", 3 KiB,
// less than a quarter of a page, is always near and has no stay.
TEST_F(FindStays, TakeWhatCopiesTake) {
  graph.data[0].size = 9_KiB;
  graph.data[1].size = 3_KiB;
  plan.page = plan.offloads[0].size = plan.prefetches[0].size = 16_KiB;
  const std::vector<Stay> stays = find_stays(graph, plan);
  ASSERT_EQ(stays.size(), 3U);
  EXPECT_EQ(stays[0].size, 12_KiB);
  EXPECT_TRUE(stays[1].is_workspace);
}

// a, run again, is used up twice: by "use a" and at the end.
TEST_F(FindStays, OfABlockMadeAgainAreApart) {
  plan.offloads = {};
  plan.prefetches = {};
  for (TaskRun& run : plan.runs) run.after = {};
  graph.add(Task{.name = "use a again", .reads = {a}});
  plan.runs.push_back({.task = TaskId{0}, .is_recomputation = true});
  plan.runs.push_back({.task = TaskId{3}});
  const std::vector<Stay> stays = find_stays(graph, plan);
  ASSERT_EQ(stays.size(), 4U);
  EXPECT_EQ(stays[0].last, 2U);
  EXPECT_EQ(stays[3].data, a);
  EXPECT_EQ(stays[3].first, 3U);
  EXPECT_EQ(stays[3].last, 4U);
}

TEST_F(FindStays, RefusesPartsOfBlocksAndPagingOnDemand) {
  plan.offloads[0].size = pages(1);
  EXPECT_THROW(static_cast<void>(find_stays(graph, plan)), um::ContractError);
  plan.offloads = plan.prefetches = {};
  plan.residency = Residency::kOnDemand;
  EXPECT_THROW(static_cast<void>(find_stays(graph, plan)), um::ContractError);
}

}  // namespace
}  // namespace spillway::prefetch
