#include "prefetch/files/plan_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "prefetch/files/profile_file.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

RC_GTEST_PROP(PlanFile, GivesBackEveryPlan, ()) {
  const TaskGraph graph = random_graph();
  const Profile profile = random_profile(graph);
  Problem given{.graph = graph, .profile = profile, .page = kPage, .chunk = pages(2)};
  given.budget = near_need(graph, BlockSizes{graph, kPage}).smallest + pages(1);
  given.whole_blocks = *rc::gen::arbitrary<bool>();
  given.may_recompute = *rc::gen::arbitrary<bool>();
  for (const char* planner : {"fractional", "on-demand"}) {
    const Plan plan = planned(planner, given);
    RC_ASSERT(read_plan(JsonFile{to_json(plan, graph).dump(), "p"}, graph) == plan);
  }
}

RC_GTEST_PROP(ProfileFile, GivesBackEveryProfile, ()) {
  const TaskGraph graph = random_graph();
  Profile profile = random_profile(graph);
  profile.link.compute_speed_while_moving = 0.625;
  profile.link.faults = {.time = 7us,
                         .spare_overwritten = *rc::gen::arbitrary<bool>(),
                         .evict_by_use = *rc::gen::arbitrary<bool>()};
  const Profile read = read_profile(JsonFile{to_json(profile, graph).dump(), "p"}, graph);
  RC_ASSERT(read.source == profile.source);
  RC_ASSERT(read.graph == profile.graph);
  RC_ASSERT(read.durations == profile.durations);
  RC_ASSERT(to_json(read.link) == to_json(profile.link));
}

}  // namespace
}  // namespace spillway::prefetch
