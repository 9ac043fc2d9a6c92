#include "prefetch/moves/timed_schedule.h"

#include <gtest/gtest.h>

#include "prefetch/moves/offload_plan.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// A pool of 4 pages holds y or x. y is made till 100 and out at 140, x is made till 240. Whole, it
// is out at 280, y back at 320 and used till 420, x back at 460 and used till 560. Page by page y
// follows x from 250 on and is back at 290.
TEST(TimedSchedule, BringsPartsBackWhileOthersStillLeave) {
  const TaskGraph graph = toy_graph("y:4 x:4", "y = make y(); x = make x(); use y(y); use x(x)");
  Profile profile = flat_profile(graph, 100ns);
  profile.link.is_duplex = true;
  Problem given = problem(graph, profile, pages(4));
  given.chunk = kPage;
  const OffloadPlanner planner{given};
  const auto makespan = [&](bool in_parts) {
    LifeFinder finder{graph};
    const MoveDecisions moves{.move_order = {.in_parts = in_parts}};
    const auto evaluated = planner.plan(runs_in_order(graph), finder, moves);
    EXPECT_EQ(reason_against(graph, evaluated->plan), "");
    return evaluated->makespan;
  };
  EXPECT_EQ(makespan(false), 560ns);
  EXPECT_EQ(makespan(true), 530ns);
}

}  // namespace
}  // namespace spillway::prefetch
