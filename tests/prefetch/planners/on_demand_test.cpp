#include <gtest/gtest.h>

#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Blocks of one page and room for two.
//   make a            a
//   make b            a b
//   use a             a b
//   make c    b out   a c      b was used longest ago
//   use b     a out   b c      a at 2, c at 3
//   use a     c out   a b      c at 3, b at 4; a dies
//   use b, c          b c
TEST(OnDemand, SendsAwayWhatWasUsedLongestAgo) {
  const TaskGraph graph = toy_graph("a:1 b:1 c:1",
                                    "a = make a(); b = make b(); use a(a); c = make c(); "
                                    "use b(b); use a again(a); use b and c(b, c)");
  const Profile profile = flat_profile(graph, 100ns);
  Problem given = problem(graph, profile, pages(2));
  given.whole_blocks = true;
  const Plan plan = planned("on-demand", given);
  EXPECT_EQ(names(graph, plan.offloads), "b a c");
  EXPECT_EQ(names(graph, plan.prefetches), "b a c");
  EXPECT_EQ(reason_against(graph, plan), "");
}

// Room for two pages; c and d have two. a leaves for c, comes back, and leaves for d: the second
// time without a transfer, unless the use in between changed it.
TEST(OnDemand, SendsAnUnchangedBlockAwayWithoutATransfer) {
  for (const bool is_changed : {false, true}) {
    const TaskGraph graph = toy_graph("a:1 c:2 d:2", std::string{"a = make a(); c = make c(); "} +
                                                         (is_changed ? "a = " : "") +
                                                         "use a(a); d = make d(); use a again(a)");
    const Profile profile = flat_profile(graph, 100ns);
    Problem given = problem(graph, profile, pages(2));
    given.whole_blocks = true;
    const Plan plan = planned("on-demand", given);
    ASSERT_EQ(plan.offloads.size(), 2U);
    EXPECT_FALSE(plan.offloads[0].is_clean);
    EXPECT_EQ(plan.offloads[1].is_clean, !is_changed);
    EXPECT_EQ(reason_against(graph, plan), "");
  }
}

}  // namespace
}  // namespace spillway::prefetch
