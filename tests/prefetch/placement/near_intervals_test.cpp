// Near intervals, and places of state that outlives the step.
#include "prefetch/placement/near_intervals.h"

#include <gtest/gtest.h>

#include <vector>

#include "prefetch/far_update.h"
#include "prefetch/placement/interval_placement.h"
#include "prefetch/placement/placed_step.h"
#include "prefetch/verify/verify.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/swapped_toys.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

struct FindNearIntervals : public ::testing::Test, public SwappedToy {};

TEST_F(FindNearIntervals, CutsALifeWhereTheBlockIsAway) {
  const std::vector<NearInterval> intervals = find_near_intervals(graph, plan);
  ASSERT_EQ(intervals.size(), 4U);  // a, b, the workspace, a again
  EXPECT_EQ(intervals[0].data, a);
  EXPECT_FALSE(intervals[0].is_prefetched);
  EXPECT_TRUE(intervals[0].is_offloaded);
  EXPECT_EQ(intervals[0].first, 0U);
  EXPECT_EQ(intervals[0].last, 0U);
  EXPECT_EQ(intervals[3].data, a);
  EXPECT_TRUE(intervals[3].is_prefetched);
  EXPECT_FALSE(intervals[3].is_offloaded);
  EXPECT_EQ(intervals[3].first, 0U);
  EXPECT_EQ(intervals[3].last, 2U);
}

TEST_F(FindNearIntervals, GivesWorkspacesTheirRun) {
  const std::vector<NearInterval> intervals = find_near_intervals(graph, plan);
  EXPECT_EQ(intervals[1].data, b);
  EXPECT_FALSE(intervals[1].is_workspace);
  EXPECT_TRUE(intervals[2].is_workspace);
  EXPECT_EQ(intervals[2].size, pages(1));
  EXPECT_EQ(intervals[2].first, 1U);
  EXPECT_EQ(intervals[2].last, 1U);
}

// Pages of 16 KiB: "a", 9 KiB, takes one in the plan but three of 4 KiB in the arena. "b", 3 KiB,
// less than a quarter of a page, is always near and has no near interval.
TEST_F(FindNearIntervals, TakeWhatCopiesTake) {
  graph.data[0].size = 9_KiB;
  graph.data[1].size = 3_KiB;
  plan.page = plan.offloads[0].size = plan.prefetches[0].size = 16_KiB;
  const std::vector<NearInterval> intervals = find_near_intervals(graph, plan);
  ASSERT_EQ(intervals.size(), 3U);
  EXPECT_EQ(intervals[0].size, 12_KiB);
  EXPECT_TRUE(intervals[1].is_workspace);
}

// a, recomputed, dies twice: after "use a" and at the end.
TEST_F(FindNearIntervals, OfABlockMadeAgainAreApart) {
  plan.offloads = {};
  plan.prefetches = {};
  for (TaskRun& run : plan.runs) run.after = {};
  graph.add(Task{.name = "use a again", .reads = {a}});
  plan.runs.push_back({.task = TaskId{0}, .is_recomputation = true});
  plan.runs.push_back({.task = TaskId{3}});
  const std::vector<NearInterval> intervals = find_near_intervals(graph, plan);
  ASSERT_EQ(intervals.size(), 4U);
  EXPECT_EQ(intervals[0].last, 2U);
  EXPECT_EQ(intervals[3].data, a);
  EXPECT_EQ(intervals[3].first, 3U);
  EXPECT_EQ(intervals[3].last, 4U);
}

TEST_F(FindNearIntervals, RefusesPartsOfBlocksAndPagingOnDemand) {
  plan.offloads[0].size = pages(1);
  EXPECT_THROW(static_cast<void>(find_near_intervals(graph, plan)), um::ContractError);
  plan.offloads = plan.prefetches = {};
  plan.residency = Residency::kOnDemand;
  EXPECT_THROW(static_cast<void>(find_near_intervals(graph, plan)), um::ContractError);
}

// g leaves when it is made, returns for "scale", and leaves again for the update.
TEST(FindNearIntervalsOfAGradient, ThatIsUsedBeforeItIsSent) {
  TaskGraph graph =
      toy_graph("w:2 g:2 t:3", "g = back(w); t = other(); g = scale(g, t); w = update(w, g)");
  graph.tasks.back().phase = Phase::kUpdate;
  const DataId w = find_block(graph, "w");
  const DataId g = find_block(graph, "g");
  make_offloadable(graph, w);
  graph = with_far_updates(graph, far_updatable(graph, kPage));
  ASSERT_EQ(graph.far_updates.size(), 1U);
  Plan plan = plain_plan_with_pool(graph, pages(7));
  plan.prefetches = {{.data = w, .size = pages(2)},
                     {.data = g, .size = pages(2), .after = {.runs = 2, .offloads = 2}}};
  plan.offloads = {{.data = w, .size = pages(2), .is_clean = true, .after = {.runs = 1}},
                   {.data = g, .size = pages(2), .after = {.runs = 1}},
                   {.data = g, .size = pages(2), .after = {.runs = 3}}};
  plan.runs[0].after.prefetches = 1;
  plan.runs[2].after.prefetches = 2;
  plan.far_runs = {{.update = 0, .after = {.offloads = 3, .prefetches = 2}}};
  ASSERT_EQ(reason_against(graph, plan), "");

  std::vector<NearInterval> of_gradient = find_near_intervals(graph, plan);
  std::erase_if(of_gradient, [&](const NearInterval& interval) { return interval.data != g; });
  ASSERT_EQ(of_gradient.size(), 2U);
  EXPECT_FALSE(of_gradient[0].is_prefetched);
  EXPECT_EQ(of_gradient[0].first, 0U);
  EXPECT_TRUE(of_gradient[0].is_offloaded);
  EXPECT_EQ(of_gradient[0].last, 1U);
  EXPECT_TRUE(of_gradient[1].is_prefetched);
  EXPECT_EQ(of_gradient[1].first, 1U);
  EXPECT_TRUE(of_gradient[1].is_offloaded);
  EXPECT_EQ(of_gradient[1].last, 2U);
}

template <typename Weight>
std::vector<NearInterval> intervals_of(const Weight& subject) {
  EXPECT_TRUE(std::holds_alternative<Verified>(verify(subject.graph, subject.plan)));
  return find_near_intervals(subject.graph, subject.plan);
}

// Expects that the weight comes from afar and goes there.
void expect_moved_weight(const NearInterval& interval, bool spans_steps) {
  EXPECT_EQ(interval.data, DataId{0});
  EXPECT_TRUE(interval.is_prefetched);
  EXPECT_TRUE(interval.is_offloaded);
  EXPECT_EQ(interval.spans_steps, spans_steps);
}

TEST(StateIntervals, OfAFarWeightAreFromPrefetchToOffload) {
  const std::vector<NearInterval> intervals = intervals_of(FarWeight{});
  ASSERT_EQ(intervals.size(), 3U);  // t, w, w again
  for (std::uint32_t i = 0; i < 2; ++i) {
    const NearInterval& interval = intervals[1 + i];
    expect_moved_weight(interval, false);
    EXPECT_EQ(interval.first, i);
    EXPECT_EQ(interval.last, i);
  }
}

TEST(StateIntervals, OfANearWeightGoesOnInTheNextStep) {
  const std::vector<NearInterval> intervals = intervals_of(NearWeight{});
  ASSERT_EQ(intervals.size(), 2U);
  expect_moved_weight(intervals[1], true);
}

// From its first prefetch to the offload after its change; then from its renewal into the next
// step.
TEST(StateIntervals, OfAWeightWithAFarCopyGoOnFromItsRenewal) {
  const std::vector<NearInterval> intervals = intervals_of(RenewedWeight{});
  ASSERT_EQ(intervals.size(), 3U);  // t, w, w again
  for (std::uint32_t i = 0; i < 2; ++i) {
    const NearInterval& interval = intervals[1 + i];
    expect_moved_weight(interval, i == 1);
    EXPECT_EQ(interval.first, i);
    EXPECT_EQ(interval.last, 1 - i);
  }
  const RenewedWeight subject;
  const PlacedStep step = place_step(subject.graph, subject.plan, pages(3));
  EXPECT_TRUE(step.fits);
  EXPECT_EQ(step.size_between_steps(), pages(2));
}

TEST(StateIntervals, OfAWeightThatNeverMovesIsAlways) {
  const std::vector<NearInterval> intervals = intervals_of(StillWeight{});
  ASSERT_EQ(intervals.size(), 2U);
  EXPECT_EQ(intervals[0].data, DataId{0});
  EXPECT_FALSE(intervals[0].is_prefetched);
  EXPECT_FALSE(intervals[0].is_offloaded);
  EXPECT_TRUE(intervals[0].spans_steps);
}

// t may use w's place while w is away.
TEST(StateIntervals, ShareAddressesWithWhatIsThereMeanwhile) {
  const NearWeight subject;
  const PlacedStep step = place_step(subject.graph, subject.plan, pages(3));
  EXPECT_TRUE(step.fits);
  EXPECT_EQ(step.placement.extent, pages(3));
  EXPECT_EQ(step.size_between_steps(), pages(2));
  EXPECT_EQ(step.between_steps(subject.w), 1U);
}

TEST(StateIntervals, OfAWeightThatNeverMovesShareNothing) {
  const StillWeight subject;
  EXPECT_EQ(place_step(subject.graph, subject.plan, pages(5)).placement.extent, pages(5));
  EXPECT_EQ(place_step(subject.graph, subject.plan, pages(3)).placement.extent, pages(5));
}

// Places t and w at the same address.
template <typename Weight>
std::string complaint(const Weight& subject) {
  const auto violation =
      check_placement(subject.graph, subject.plan, find_near_intervals(subject.graph, subject.plan),
                      {.offsets = {0_B, 0_B}, .extent = pages(3)});
  return violation ? violation->reason : "";
}

TEST(StateIntervals, AreRefusedBesideWhatBeginsBeforeTheyEnd) {
  NearWeight subject;
  EXPECT_EQ(complaint(subject), "");
  subject.plan.runs[1].after.offloads = 0;
  subject.plan.runs[2].after.offloads = 0;
  EXPECT_EQ(complaint(subject), "t and w share addresses and may be near at the same time");
}

TEST(StateIntervals, AreRefusedBesideWhatEndsAfterTheyBegin) {
  NearWeight subject;
  subject.plan.prefetches[0].after.runs = 1;
  EXPECT_EQ(complaint(subject), "t and w share addresses and may be near at the same time");
  EXPECT_EQ(
      place_intervals(subject.plan, find_near_intervals(subject.graph, subject.plan), pages(3))
          .extent,
      pages(5));
}

TEST(StateIntervals, AreRefusedBesideWhatNeverMoves) {
  EXPECT_EQ(complaint(StillWeight{}), "w and t share addresses and may be near at the same time");
}

// Both weights leave before run 0 and return after it: each lies in the other's gap, but between
// steps they conflict.
TEST(StateIntervals, MeetBetweenSteps) {
  TaskGraph graph = toy_graph("v:1 w:1 t:2", "t = make(); use(v, w)");
  Plan plan = plain_plan(graph, pages(2));
  const auto whole = [](DataId id, const Progress& after) {
    return Move{.data = id, .offset = {}, .size = pages(1), .after = after};
  };
  const DataId v{0};
  const DataId w{1};
  for (const DataId id : {v, w}) make_offloadable(graph, id);
  plan.graph = fingerprint(graph);
  plan.offloads = {whole(v, {}), whole(w, {})};
  plan.prefetches = {whole(v, {.runs = 1, .offloads = 2}), whole(w, {.runs = 1, .offloads = 2})};
  plan.runs[0].after.offloads = 2;
  plan.runs[1].after = {.runs = 1, .offloads = 2, .prefetches = 2};
  ASSERT_TRUE(std::holds_alternative<Verified>(verify(graph, plan)));
  const std::vector<NearInterval> intervals = find_near_intervals(graph, plan);
  ASSERT_EQ(intervals.size(), 3U);  // t, v, w
  const auto violation =
      check_placement(graph, plan, intervals, {.offsets = {0_B, 0_B, 0_B}, .extent = pages(2)});
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->reason, "v and w share addresses and may be near at the same time");
  const PlacedStep step = place_step(graph, plan, pages(2));
  EXPECT_TRUE(step.fits);
  EXPECT_EQ(step.size_between_steps(), pages(2));
}

}  // namespace
}  // namespace spillway::prefetch
