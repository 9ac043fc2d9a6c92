#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// In the graph's order, more room never makes the default planner's plan longer. A search for
// other orders knows nothing of what it finds with less room.
RC_GTEST_PROP(EveryPlanner, OfMoreRoomMakesNoLongerStep, ()) {
  const TaskGraph graph = random_graph();
  const Profile profile = random_profile(graph);
  Problem given = random_problem(graph, profile);
  given.may_reorder = false;
  std::vector<um::Bytes> budgets;
  for (int i = 0; i < 6; ++i) budgets.push_back(random_budget(graph, kPage));
  std::ranges::sort(budgets);
  um::Nanoseconds before = um::Nanoseconds::max();
  for (const um::Bytes budget : budgets) {
    given.budget = budget;
    const um::Nanoseconds makespan = simulate(planned("joint", given), profile).makespan();
    if (makespan > before) {
      RC_FAIL("with " + um::to_string(budget) + " " + std::to_string(makespan.count()) +
              " ns, with less " + std::to_string(before.count()) + " ns");
    }
    before = makespan;
  }
}

}  // namespace
}  // namespace spillway::prefetch
