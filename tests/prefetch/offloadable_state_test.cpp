// State that may be far between steps: offloadable weights.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "prefetch/bounds/bounds.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/state_home.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/trace_checker.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Three tasks: "use" reads the weight w (2 pages), "other" touches only t (3 pages), "update"
// changes w. In a pool of 3 pages w must be far while "other" runs.
class OneWeight : public ::testing::Test {
 protected:
  OneWeight() {
    make_offloadable(graph, w);
    profile = flat_profile(graph, 100ns);
    plan = plain_plan_with_pool(graph, pages(3));
  }
  [[nodiscard]] Move whole(const Progress& after, bool is_clean = false) const {
    return {.data = w, .offset = {}, .size = pages(2), .is_clean = is_clean, .after = after};
  }
  // w is far between steps: prefetched, freed clean, prefetched again, offloaded.
  void begin_far() {
    plan.prefetches = {whole({}), whole({.runs = 2, .offloads = 1})};
    plan.offloads = {whole({.runs = 1}, true), whole({.runs = 3})};
    plan.runs[0].after.prefetches = 1;
    plan.runs[1].after.offloads = 1;
    plan.runs[2].after.prefetches = 2;
  }
  // w is near between steps: offloaded once and prefetched.
  void begin_near() {
    for (Position p = 0; p < 3; ++p) plan.runs[p].after = {.runs = p};
    plan.offloads = {whole({.runs = 1})};
    plan.prefetches = {whole({.runs = 2, .offloads = 1})};
    plan.runs[1].after.offloads = 1;
    plan.runs[2].after.prefetches = 1;
  }
  // w is near with a far copy between steps.
  void begin_with_copy() {
    begin_near();
    plan.offloads = {whole({.runs = 1}, true), whole({.runs = 3})};
    plan.prefetches = {whole({.runs = 2, .offloads = 1}), whole({.runs = 3, .offloads = 2})};
  }
  TaskGraph graph = toy_graph("w:2 t:3", "use(w); t = other(); w = update(w)");
  DataId w{0};
  Profile profile;
  Plan plan;
};

TEST_F(OneWeight, LivesAllStepLong) {
  const std::vector<Life> lives = find_lives(graph, plan.runs);
  ASSERT_EQ(lives.size(), 2U);
  EXPECT_TRUE(lives[0].outlives_step());
  EXPECT_EQ(lives[0].last(), 2U);
  const BlockSizes block_sizes{graph, kPage};
  EXPECT_EQ(near_need(graph, block_sizes).resident, block_sizes.pinned() + pages(5));
  EXPECT_EQ(near_need(graph, block_sizes).smallest, block_sizes.pinned() + pages(3));
}

TEST_F(OneWeight, MayBeFarBetweenSteps) {
  begin_far();
  EXPECT_EQ(reason_against(graph, plan), "");
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(check_trace(graph, plan, timeline, profile.link), "");
  EXPECT_EQ(StateHome(graph, BlockSizes{graph, kPage}, plan).far(), pages(2));
  // In 20 ns, use 100, other 100, in 20, update 100, and out 20 after the last task.
  EXPECT_EQ(timeline.makespan(), 360ns);
}

TEST_F(OneWeight, MayBeNearBetweenSteps) {
  begin_near();
  EXPECT_EQ(reason_against(graph, plan), "");
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(check_trace(graph, plan, timeline, profile.link), "");
  EXPECT_EQ(StateHome(graph, BlockSizes{graph, kPage}, plan).far(), 0_B);
  EXPECT_EQ(memory_curve(graph, plan, timeline).front().near,
            BlockSizes(graph, kPage).pinned() + pages(2));
}

TEST_F(OneWeight, MustEndTheStepWhereItBegan) {
  begin_far();
  plan.offloads.pop_back();
  EXPECT_EQ(reason_against(graph, plan), "w does not end the step where it began");
  begin_near();
  plan.offloads.push_back(whole({.runs = 3}));
  EXPECT_EQ(reason_against(graph, plan), "w does not end the step where it began");
}

TEST_F(OneWeight, MustBeNearWhenItIsUsed) {
  begin_far();
  plan.runs[0].after.prefetches = 0;
  EXPECT_NE(reason_against(graph, plan), "");
}

TEST_F(OneWeight, MustBeWrittenBackOnceItWasUpdated) {
  begin_far();
  plan.offloads.back().is_clean = true;
  EXPECT_EQ(reason_against(graph, plan), "w is freed without a valid far copy");
  begin_near();
  plan.offloads.front().is_clean = true;  // w begins with a far copy, which is stale at the end
  EXPECT_EQ(reason_against(graph, plan), "w ends the step without the far copy that it began with");
}

TEST_F(OneWeight, CountsInTheBudgetWhileItIsNear) {
  begin_far();
  plan.budget -= pages(1);
  EXPECT_NE(reason_against(graph, plan), "");
  plan.budget += pages(1);
  plan.runs[1].after.offloads = 0;  // does not wait until w has left
  EXPECT_NE(reason_against(graph, plan), "");
}

// w is freed without a copy and prefetched; after the update it is offloaded and prefetched for its
// far copy: use 100, other 100, in 20, update 100, out 20, in 20.
TEST_F(OneWeight, MayBeNearWithAFarCopyBetweenSteps) {
  begin_with_copy();
  EXPECT_EQ(reason_against(graph, plan), "");
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(check_trace(graph, plan, timeline, profile.link), "");
  EXPECT_EQ(timeline.makespan(), 360ns);
  const StateHome home{graph, BlockSizes{graph, kPage}, plan};
  EXPECT_EQ(home.far(), 0_B);
  EXPECT_EQ(home.copied_pages(w), (std::vector<bool>{true, true}));
}

TEST_F(OneWeight, MustHaveAFarCopyAgainWhereItBeganWithOne) {
  begin_with_copy();
  plan.offloads.pop_back();
  plan.prefetches.pop_back();
  EXPECT_EQ(reason_against(graph, plan), "w ends the step without the far copy that it began with");
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(check_trace(graph, plan, timeline, profile.link),
            "w ends the step with a stale far copy");
  begin_with_copy();
  plan.offloads.back().size = pages(1);
  plan.prefetches.back().size = pages(1);
  EXPECT_EQ(reason_against(graph, plan), "w ends the step without the far copy that it began with");
  begin_with_copy();
  plan.prefetches.pop_back();
  EXPECT_EQ(reason_against(graph, plan), "w does not end the step where it began");
}

// w is away once, between its uses: 20 ns out, 20 in. Far between steps it would cost three
// transfers.
TEST_F(OneWeight, StaysNearBetweenStepsWhereThatIsShorter) {
  const Plan made = planned("capacity", problem(graph, profile, pages(3)));
  EXPECT_EQ(reason_against(graph, made), "");
  EXPECT_EQ(simulate(made, profile).makespan(), 340ns);
  EXPECT_EQ(StateHome(graph, BlockSizes{graph, kPage}, made).far(), 0_B);
}

// Two weights of two pages, each read by one task, in a pool of two: while one is used the other is
// far, so both are far between steps. The first in 20 ns, a 100, the second in 20, b 100. Neither
// is written, so both leave without a transfer.
TEST(FarBetweenSteps, IsWhereWeightsDoNotFitTogether) {
  TaskGraph graph = toy_graph("wa:2 wb:2", "a(wa); b(wb)");
  for (const DataId weight : {DataId{0}, DataId{1}}) make_offloadable(graph, weight);
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = planned("capacity", problem(graph, profile, pages(2)));
  EXPECT_EQ(reason_against(graph, plan), "");
  EXPECT_EQ(StateHome(graph, BlockSizes{graph, kPage}, plan).far(), pages(4));
  EXPECT_EQ(simulate(plan, profile).makespan(), 240ns);
}

// While "other" runs both pages are far. An older far copy may be valid, and they return for the
// update: 100 + 100 + 20 + 100.
TEST_F(OneWeight, HasBoundsThatCountItsWayBack) {
  const auto bounds = lower_bounds(problem(graph, profile, pages(3)));
  EXPECT_LE(bounds.offload, 320ns);
  EXPECT_GE(bounds.offload, 319ns);
  EXPECT_EQ(bounds.mixed, bounds.offload);
  EXPECT_LE(bounds.beaumont, 300ns);
}

TEST_F(OneWeight, TellsGraphsApart) {
  const std::uint64_t before = fingerprint(graph);
  graph.data[0].is_offloadable = false;
  EXPECT_NE(fingerprint(graph), before);
}

RC_GTEST_PROP(OffloadableState, IsPlannedSoundlyByEveryPlanner, ()) {
  const TaskGraph graph = random_graph({.has_offloadable_weights = true});
  const Profile profile = random_profile(graph);
  const Problem given = random_problem(graph, profile);
  for (const auto& planner : planners()) {
    const auto result = planner->plan(given);
    if (!std::holds_alternative<Plan>(result)) {
      RC_ASSERT(planner->name() != "capacity");  // works from the smallest budget on
      RC_ASSERT(planner->name() != "on-demand");
      continue;
    }
    const auto& plan = std::get<Plan>(result);
    const std::string broken = reason_against(graph, plan);
    if (!broken.empty()) RC_FAIL(std::string{planner->name()} + ": " + broken);
    const SimulateOptions noise{.noise = 0.9, .seed = *rc::gen::arbitrary<std::uint64_t>()};
    const Timeline timeline = simulate(graph, plan, profile, noise);
    if (plan.residency == Residency::kOnDemand) continue;
    const std::string wrong = check_trace(graph, plan, timeline, profile.link);
    if (!wrong.empty()) RC_FAIL(std::string{planner->name()} + ": " + wrong);
  }
}

}  // namespace
}  // namespace spillway::prefetch
