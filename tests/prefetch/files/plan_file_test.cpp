#include "prefetch/files/plan_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "prefetch/files/profile_file.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/three_layers.h"
#include "um/error.h"

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

TEST(PlanFile, GivesBackExchangesBetweenRanks) {
  const TaskGraph graph = exchanged(three_layers(), kBucketEach);
  Plan plan = plain_plan_with_pool(graph, pages(1));
  add_exchanges(graph, plan);
  ASSERT_EQ(plan.exchanges.size(), 3U);
  const nlohmann::json file = to_json(plan, graph);
  EXPECT_EQ(read_plan(JsonFile{file.dump(), "p"}, graph), plan);
  EXPECT_EQ(file.at("exchanges").at(1),
            (nlohmann::json{{"exchange", "bucket 2"}, {"after_runs", 3}}));
  EXPECT_EQ(file.at("runs").at(5).at("after_exchanges"), 2);
}

TEST(PlanFile, SaysThatOneOfSeveralRanksIsNotForOne) {
  const TaskGraph graph = exchanged(three_layers(), kBucketEach);
  Plan plan = plain_plan_with_pool(graph, pages(1));
  add_exchanges(graph, plan);
  const JsonFile file{to_json(plan, graph).dump(), "p"};
  try {
    static_cast<void>(read_plan(file, three_layers()));
    FAIL() << "it was read";
  } catch (const um::Error& error) {
    EXPECT_STREQ(error.what(),
                 "p: exchanges are of gradients between several ranks, and this training has one: "
                 "make the plan without --ranks");
  }
}

TEST(PlanFile, OfOneRankNamesNoExchange) {
  const TaskGraph graph = three_layers();
  const std::string text = to_json(plain_plan_with_pool(graph, pages(4)), graph).dump();
  EXPECT_EQ(text.find("exchange"), std::string::npos) << text;
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
