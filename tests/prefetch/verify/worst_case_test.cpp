#include <gtest/gtest.h>

#include "prefetch/verify/residency_check.h"
#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// x (two pages) is made by run 0 and used by run 2; y (three pages) lives in run 1 alone; x may be
// away meanwhile. 64 bytes of state are always near.
class WorstCasePeak : public ::testing::Test {
 protected:
  WorstCasePeak() {
    const DataId x{0};
    graph.add(DataBlock{.name = "w", .size = 8_B, .kind = DataKind::kState});
    plan.runs = runs_in_order(graph);
    plan.offloads = {{.data = x, .size = pages(2), .after = {.runs = 1}}};
    plan.prefetches = {{.data = x, .size = pages(2), .after = {2, 1, 0}}};
    plan.runs[1].after = {1, 1, 0};
    plan.runs[2].after = {2, 1, 1};
  }
  [[nodiscard]] um::Bytes peak() const {
    return worst_case_peak(graph, BlockSizes{graph, kPage}, plan, find_lives(graph, plan.runs));
  }
  TaskGraph graph = toy_graph("x:2 y:3", "x = make x(); y = make y(); use x(x)");
  Plan plan;
};

TEST_F(WorstCasePeak, CountsAsAwayWhatMustHaveLeft) { EXPECT_EQ(peak(), pages(3) + 64_B); }

TEST_F(WorstCasePeak, CountsAsNearWhatNobodyWaitedFor) {
  plan.runs[1].after.offloads = 0;  // x may still be leaving
  EXPECT_EQ(peak(), pages(5) + 64_B);
}

TEST_F(WorstCasePeak, CountsAPrefetchThatMayHaveStarted) {
  plan.prefetches[0].after.runs = 1;  // x may be coming back while y is there
  EXPECT_EQ(peak(), pages(5) + 64_B);
}

TEST_F(WorstCasePeak, CountsTheWorkspaceOfTheChosenAlgorithm) {
  graph.tasks[1].algorithms.push_back({.name = "fast", .workspace = pages(4)});
  EXPECT_EQ(peak(), pages(3) + 64_B);
  plan.runs[1].algorithm = 1;
  EXPECT_EQ(peak(), pages(7) + 64_B);
}

}  // namespace
}  // namespace spillway::prefetch
