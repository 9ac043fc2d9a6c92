// The checker of executed steps detects their errors.
#include "tests/prefetch/trace_checker.h"

#include <gtest/gtest.h>

#include <string>

#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// An executed plan for a chain of six layers at three quarters of its need.
class TraceCheckerTest : public ::testing::Test {
 protected:
  TraceCheckerTest() {
    plan = planned("fractional", problem(graph, profile, pages(14)));
    timeline = simulate(plan, profile);
  }
  [[nodiscard]] std::string fault() const {
    return check_trace(graph, plan, timeline, profile.link);
  }
  [[nodiscard]] bool finds(const std::string& what) const {
    return fault().find(what) != std::string::npos;
  }
  TaskGraph graph = chain(6, pages(2));
  Profile profile = flat_profile(graph, 100ns);
  Plan plan;
  Timeline timeline;
};

TEST_F(TraceCheckerTest, AcceptsWhatTheSimulatorDoes) {
  ASSERT_FALSE(plan.prefetches.empty());
  EXPECT_EQ(fault(), "");
}

TEST_F(TraceCheckerTest, SeesMovesThatOverlapOnOneEngine) {
  ASSERT_GT(timeline.offloads.size(), 1U);
  timeline.offloads[1] = timeline.offloads[0];
  EXPECT_EQ(fault(), "two offloads overlap");
  timeline = simulate(plan, profile);
  timeline.prefetches[0] = timeline.offloads[0];
  profile.link.is_duplex = false;
  EXPECT_EQ(fault(), "an offload and a prefetch overlap");
}

TEST_F(TraceCheckerTest, SeesARunThatDoesNotWaitForItsPrefetch) {
  timeline.prefetches.back().begin = timeline.prefetches.back().end = timeline.runs.back().end;
  EXPECT_TRUE(finds("part of which is far"));
}

TEST_F(TraceCheckerTest, SeesAPageThatIsCopiedOutBeforeItIsWritten) {
  timeline.offloads[0].begin = 0ns;
  EXPECT_TRUE(finds("copied out"));
}

TEST_F(TraceCheckerTest, SeesAnOffloadThatTransfersNothingAndIsNotClean) {
  plan.offloads[0].is_clean = true;
  EXPECT_TRUE(finds("its content is nowhere else"));
}

TEST_F(TraceCheckerTest, SeesMoreThanTheBudget) {
  plan.budget -= kPage;
  EXPECT_TRUE(finds("more than the budget"));
}

// load 0, f1 1, f2 2, loss 3, f1 again 4, b2 5: f2 has updated y1, and f1 restores its first
// content.
TEST_F(TraceCheckerTest, SeesContentThatTheOrderOfTheTasksDoesNotPromise) {
  TaskGraph updated = chain(2, pages(1));
  updated.tasks[2].writes.push_back(DataId{1});  // f2 updates y1, which b2 reads
  Plan again = plain_plan(updated, pages(20));
  again.runs.insert(again.runs.begin() + 4, {.task = TaskId{1}, .is_recomputation = true});
  for (std::uint32_t p = 0; p < again.runs.size(); ++p) again.runs[p].after.runs = p;
  const Profile times = flat_profile(updated, 100ns);
  EXPECT_EQ(check_trace(updated, again, simulate(again, times), times.link),
            "b2 finds other content in y1 at 500 ns");
}

}  // namespace
}  // namespace spillway::prefetch
