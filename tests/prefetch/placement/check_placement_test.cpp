#include <gtest/gtest.h>

#include "prefetch/placement/placed_step.h"
#include "tests/prefetch/swapped_toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// The near intervals are a, b, the workspace, and a again. All that overlap must lie apart: b
// beside its workspace.
struct CheckPlacement : public ::testing::Test, public SwappedToy {
  [[nodiscard]] std::string complaint() const {
    const auto violation =
        check_placement(graph, plan, find_near_intervals(graph, plan), placement);
    return violation ? violation->reason : "";
  }
  IntervalPlacement placement{.offsets = {0_B, 0_B, pages(2), pages(1)}, .extent = pages(3)};
};

TEST_F(CheckPlacement, AcceptsSharingBetweenWhatIsNeverNearTogether) { EXPECT_EQ(complaint(), ""); }

TEST_F(CheckPlacement, RefusesAWorkspaceInARunsOperand) {
  placement.offsets[2] = pages(1);
  EXPECT_EQ(complaint(),
            "b and the workspace of make b share addresses and may be near at the same time");
}

TEST_F(CheckPlacement, RefusesTheRoomOfAnOffloadThatNobodyWaitedFor) {
  plan.runs[1].after.offloads = 0;  // a may still be leaving while b is made
  EXPECT_EQ(complaint(), "a and b share addresses and may be near at the same time");
}

TEST_F(CheckPlacement, SeesWhatIsWaitedForByWayOfOthers) {
  static_cast<SwappedToy&>(*this) = SwappedByWayOfAnother{};
  // a, c, b, the workspace; then c and a come back.
  placement = {.offsets = {0_B, pages(2), 0_B, pages(2), pages(3), 0_B}, .extent = pages(4)};
  EXPECT_EQ(complaint(), "");
  plan.prefetches[0].after.offloads = 1;
  EXPECT_EQ(complaint(), "a and b share addresses and may be near at the same time");
}

// The copy of a may end before run 1, which reads on, does: then a's room is not free yet.
TEST_F(CheckPlacement, RefusesTheRoomOfABlockThatIsStillRead) {
  graph.tasks[1].reads = {a};
  plan.budget = pages(5);
  plan.offloads[0].free_after = 2;
  EXPECT_EQ(complaint(), "a and b share addresses and may be near at the same time");
  placement = {.offsets = {0_B, pages(2), pages(4), 0_B}, .extent = pages(5)};
  EXPECT_EQ(complaint(), "");
}

// Moves of one direction begin in order, but the second need not wait for the first to end.
TEST_F(CheckPlacement, LetsMovesOfOneDirectionMeet) {
  const DataId c = graph.add(DataBlock{.name = "c", .size = pages(1)});
  graph.tasks[0].writes.push_back(c);
  graph.tasks[2].reads.push_back(c);
  plan.offloads.push_back({.data = c, .size = pages(1), .after = {.runs = 1}});
  plan.prefetches.push_back({.data = c, .size = pages(1), .after = {.runs = 2, .offloads = 2}});
  plan.runs[1].after.offloads = 2;
  plan.runs[2].after = {.runs = 2, .offloads = 2, .prefetches = 2};
  // a, c, b, the workspace; then a and c come back.
  placement = {.offsets = {0_B, pages(2), 0_B, pages(2), 0_B, pages(1)}, .extent = pages(3)};
  EXPECT_EQ(complaint(), "a and c share addresses and may be near at the same time");
  placement.offsets[5] = pages(2);
  EXPECT_EQ(complaint(), "");
}

TEST_F(CheckPlacement, RefusesWhatDoesNotLieInTheExtentInPages) {
  placement.extent = pages(2);
  EXPECT_EQ(complaint(), "the workspace of make b reaches beyond the placement's extent");
  placement.extent = pages(4);
  placement.offsets[2] = pages(2) + 64_B;
  EXPECT_EQ(complaint(), "the workspace of make b does not lie at a multiple of 4 KiB");
  placement.offsets.pop_back();
  EXPECT_EQ(complaint(), "the placement has 3 offsets for 4 near intervals");
}

}  // namespace
}  // namespace spillway::prefetch
