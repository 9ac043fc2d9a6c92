#include "prefetch/verify/residency_check.h"

#include <gtest/gtest.h>

#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// x has two pages: made by run 0, used by the runs 2 and 4; away in between both times, the second
// time clean.
class CheckResidency : public ::testing::Test {
 protected:
  CheckResidency() {
    const DataId x{0};
    plan.runs = runs_in_order(graph);
    plan.offloads = {{.data = x, .size = pages(2), .after = {.runs = 1}},
                     {.data = x, .size = pages(2), .is_clean = true, .after = {3, 0, 1}}};
    plan.prefetches = {{.data = x, .size = pages(2), .after = {1, 1, 0}},
                       {.data = x, .size = pages(2), .after = {3, 2, 0}}};
    plan.runs[2].after = {2, 0, 1};
    plan.runs[4].after = {4, 0, 2};
  }
  [[nodiscard]] std::string reason() const {
    const auto violation =
        check_residency(graph, BlockSizes{graph, kPage}, plan, find_lives(graph, plan.runs));
    return violation ? violation->reason : "";
  }
  TaskGraph graph = toy_graph("x:2", "x = make(); other(); use(x); another(); use again(x)");
  Plan plan;
};

TEST_F(CheckResidency, AcceptsABlockThatIsNearWheneverItIsUsed) { EXPECT_EQ(reason(), ""); }

TEST_F(CheckResidency, AcceptsPagesThatComeBackInParts) {
  Move half = plan.prefetches[0];
  half.size = pages(1);
  plan.prefetches[0].size = pages(1);
  plan.prefetches[0].offset = pages(1);
  plan.prefetches.insert(plan.prefetches.begin(), half);
  plan.runs[2].after.prefetches = 2;
  plan.runs[4].after.prefetches = 3;
  EXPECT_EQ(reason(), "");
  plan.runs[2].after.prefetches = 1;
  EXPECT_EQ(reason(), "x is not all near when run 2 uses it");
}

// Copied out while run 2 still reads x.
TEST_F(CheckResidency, AcceptsACopyOfABlockThatIsOnlyRead) {
  plan.offloads.erase(plan.offloads.begin());
  plan.prefetches.erase(plan.prefetches.begin());
  plan.offloads[0] = {
      .data = plan.offloads[0].data, .size = pages(2), .after = {.runs = 1}, .free_after = 3};
  plan.prefetches[0].after = {3, 1, 0};
  plan.runs[2].after = {2, 0, 0};
  plan.runs[4].after = {4, 0, 1};
  EXPECT_EQ(reason(), "");
  plan.offloads[0].after.runs = 0;
  EXPECT_EQ(reason(), "x is offloaded before it is written");
}

TEST_F(CheckResidency, RefusesACleanOffloadOfABlockThatWasWrittenSince) {
  graph.tasks[2].writes = graph.tasks[2].reads;
  EXPECT_EQ(reason(), "x is freed without a valid far copy");
}

TEST_F(CheckResidency, RefusesToSendPagesAwayTwice) {
  plan.offloads.insert(plan.offloads.begin(), plan.offloads[0]);
  EXPECT_EQ(reason(), "x is offloaded twice");
}

TEST_F(CheckResidency, RefusesToBringBackWhatIsNear) {
  plan.prefetches.insert(plan.prefetches.begin(), plan.prefetches[0]);
  plan.runs[2].after.prefetches = 2;
  EXPECT_EQ(reason(), "x is prefetched while it is near");
}

TEST_F(CheckResidency, RefusesAMoveAfterTheLastUse) {
  plan.offloads.push_back({.data = DataId{0}, .size = pages(2), .after = {.runs = 5}});
  EXPECT_EQ(reason(), "x is moved when nobody needs it");
}

}  // namespace
}  // namespace spillway::prefetch
