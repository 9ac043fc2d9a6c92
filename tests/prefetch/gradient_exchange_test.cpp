// Exchanges of gradients between ranks: in the graph, their times, and plans of every planner for
// random steps of one rank of several.
#include "prefetch/gradient_exchange.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/bounds/bounds.h"
#include "prefetch/interconnect.h"
#include "prefetch/simulate/exchange_lane.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/three_layers.h"
#include "tests/prefetch/trace_checker.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

std::string tasks_of(const TaskGraph& graph) {
  std::string names;
  for (const Task& task : graph.tasks) names += (names.empty() ? "" : " ") + task.name;
  return names;
}

std::string buckets_of(const TaskGraph& graph) {
  std::string text;
  for (const GradientExchange& exchange : graph.exchanges) {
    if (!text.empty()) text += ", ";
    for (const DataId id : exchange.blocks) text += graph[id].name + " ";
    text += "after " + graph[exchange.ready].name;
  }
  return text;
}

TEST(GradientExchange, FillsBucketsInTheOrderInWhichGradientsAreComplete) {
  const auto buckets = [](std::uint64_t first, std::uint64_t others) {
    return buckets_of(exchanged(three_layers(), {.first = pages(first), .others = pages(others)}));
  };
  EXPECT_EQ(buckets(1, 1), "g3 after b3, g2 after b2, g1 after b1");
  EXPECT_EQ(buckets(1, 3), "g3 after b3, g2 g1 after b1");
  EXPECT_EQ(buckets(2, 1), "g3 g2 after b2, g1 after b1");
  EXPECT_EQ(buckets(9, 9), "g3 g2 g1 after b1");
}

TEST(GradientExchange, PutsUpdatesAtTheEnd) {
  EXPECT_EQ(tasks_of(exchanged(three_layers(), kBucketEach)), "f b3 b2 b1 u3 u2 u1");
}

// Otherwise weights that were prefetched for b2 would be prefetched again for their update.
TEST(GradientExchange, UpdatesMovableStateOneBucketLater) {
  TaskGraph graph = three_layers();
  for (const char* name : {"w1", "w2", "w3"}) make_offloadable(graph, find_block(graph, name));
  EXPECT_EQ(tasks_of(exchanged(std::move(graph), kBucketEach)), "f b3 b2 u3 b1 u2 u1");
}

// u2 needs only the gradient of bucket 1, but follows norm1, which needs that of bucket 2.
TEST(GradientExchange, KeepsUpdatesThatDependOnEachOtherInOrder) {
  TaskGraph graph = toy_graph("w1:1 w2:1 s:1 t:1 g1:1 g2:1",
                              "t = f(w1, w2); g2 = b2(t); g1 = b1(t);"
                              "s = norm1(g1); s = norm2(s, g2); w2 = u2(w2, g2, s);"
                              "w1 = u1(w1, g1, s)");
  for (std::size_t t = 1; t < graph.tasks.size(); ++t) {
    graph.tasks[t].phase = t < 3 ? Phase::kBackward : Phase::kUpdate;
  }
  for (const char* name : {"w1", "w2"}) make_offloadable(graph, find_block(graph, name));
  EXPECT_EQ(tasks_of(exchanged(std::move(graph), kBucketEach)), "f b2 b1 norm1 norm2 u2 u1");
}

// Otherwise uq and uk would follow bk, before dx, which reads the old weights.
TEST(GradientExchange, UpdatesMovableStateWhenNobodyNeedsTheOldOne) {
  TaskGraph graph = toy_graph("wq:1 wk:1 w0:1 t:1 gq:1 gk:1 d:1 g0:1",
                              "t = f(w0, wq, wk); gq = bq(t); gk = bk(t); d = dx(t, wq, wk);"
                              "g0 = b0(d); wq = uq(wq, gq); wk = uk(wk, gk); w0 = u0(w0, g0)");
  for (std::size_t t = 1; t < graph.tasks.size(); ++t) {
    graph.tasks[t].phase = t < 5 ? Phase::kBackward : Phase::kUpdate;
  }
  for (const char* name : {"w0", "wq", "wk"}) make_offloadable(graph, find_block(graph, name));
  EXPECT_EQ(tasks_of(exchanged(std::move(graph), kBucketEach)), "f bq bk dx uq b0 uk u0");
}

// In each layer except the last, the updated slice p lies in the gradient g, and a task takes it
// from there.
TaskGraph divided_layers() {
  TaskGraph graph = toy_graph("w1:1 w2:1 w3:1 m1:1 m2:1 t:1 g1:1 g2:1 g3:1 p1:1 p2:1",
                              "t = f(w1, w2, w3); g3 = b3(t); w3 = u3(w3, g3);"
                              "g2 = b2(t); p2, m2 = u2(w2, m2, g2); w2 = take2(p2);"
                              "g1 = b1(t); p1, m1 = u1(w1, m1, g1); w1 = take1(p1)");
  for (Task& task : graph.tasks) {
    task.phase = task.name == "f" ? Phase::kForward : Phase::kUpdate;
    if (task.name[0] == 'b') task.phase = Phase::kBackward;
  }
  for (const char* number : {"1", "2"}) {
    DataBlock& slices =
        graph.data[static_cast<std::size_t>(find_block(graph, std::string{"p"} + number))];
    slices.kind = DataKind::kState;
    slices.lies_in = find_block(graph, std::string{"g"} + number);
  }
  return graph;
}

std::string collectives_of(const TaskGraph& graph) {
  std::string text;
  for (const GradientExchange& exchange : graph.exchanges) {
    const bool gathers = exchange.collective == Collective::kAllGather;
    const bool scatters = exchange.collective == Collective::kReduceScatter;
    text += gathers ? "gather " : scatters ? "scatter " : "reduce ";
    for (const DataId id : exchange.blocks) text += graph[id].name + " ";
    text += "after " + graph[exchange.ready].name + "; ";
  }
  return text;
}

// Slices are updated one bucket later, and taken two later; each update makes a gather ready.
TEST(GradientExchange, ScattersSumsAndGathersWhatSlicesBecame) {
  const TaskGraph graph = exchanged(divided_layers(), kBucketEach);
  EXPECT_EQ(tasks_of(graph), "f b3 b2 u3 b1 u2 u1 take2 take1");
  EXPECT_EQ(collectives_of(graph),
            "reduce g3 after b3; scatter g2 after b2; scatter g1 after b1; gather p2 after u2; "
            "gather p1 after u1; ");
  EXPECT_EQ(count_buckets(graph), 3U);
}

// In one bucket divided blocks come last, and only these are gathered.
TEST(GradientExchange, PutsWhatIsDividedBehindTheRestOfItsBucket) {
  const TaskGraph graph = exchanged(divided_layers(), {.first = pages(9), .others = pages(9)});
  EXPECT_EQ(collectives_of(graph), "scatter g3 g2 g1 after b1; gather p2 p1 after u1; ");
  EXPECT_EQ(graph.exchanges[0].divided.size(), 2U);
  const CollectiveBytes sums = exchanged_bytes(graph, graph.exchanges[0]);
  EXPECT_EQ(sums.all_reduced, pages(1));
  EXPECT_EQ(sums.one_way, pages(2));
  EXPECT_EQ(exchanged_bytes(graph, graph.exchanges[1]).one_way, pages(2));
}

// A norm over all gradients needs complete gradients on every rank.
TEST(GradientExchange, ScattersNothingThatOthersThanItsUpdateRead) {
  TaskGraph graph = divided_layers();
  DataBlock norm{.name = "norm", .size = pages(1)};
  const DataId id = graph.add(std::move(norm));
  const auto u2 = std::ranges::find(graph.tasks, "u2", &Task::name);
  graph.tasks.insert(u2, Task{.name = "squares",
                              .phase = Phase::kUpdate,
                              .reads = {find_block(graph, "g2")},
                              .writes = {id}});
  const std::string text = collectives_of(exchanged(std::move(graph), kBucketEach));
  EXPECT_NE(text.find("reduce g2 "), std::string::npos) << text;
  EXPECT_NE(text.find("gather p2 "), std::string::npos) << text;
  EXPECT_NE(text.find("scatter g1 "), std::string::npos) << text;
}

// The halves of an all-reduce take its time together: 3 messages and 3/4 of the bytes each, for
// four ranks.
TEST(GradientExchange, TakesAsLongInTwoHalves) {
  const Interconnect four{.ranks = 4, .bandwidth = um::Bandwidth{1e9}, .latency = 5ns};
  const um::Nanoseconds whole = all_reduce_time(pages(4), four, toy_link()).alone;
  const um::Nanoseconds half =
      collective_time({.all_reduced = {}, .one_way = pages(4)}, four, toy_link()).alone;
  EXPECT_EQ(half, 15ns + um::Nanoseconds{3 * kPage.count()});
  EXPECT_EQ(whole, 2 * half);
}

// New parameters lie in the gradient's memory and count once.
TEST(GradientExchange, CountsTheMemoryOfGatheredParametersOnce) {
  TaskGraph graph = exchanged(divided_layers(), kBucketEach);
  const um::Bytes pinned = BlockSizes{graph, kPage}.pinned();
  for (DataBlock& block : graph.data) block.lies_in.reset();
  EXPECT_EQ((BlockSizes{graph, kPage}.pinned()), pinned + pages(2));
}

TEST(GradientExchange, KeepsTasksInOrderThatShareWhatOneOfThemWrites) {
  const TaskGraph graph = with_exchanges(three_layers(), kBucketEach);  // f b3 u3 b2 u2 b1 u1
  const auto place = [&](std::vector<std::uint32_t> order) {
    std::vector<TaskId> ids;
    for (const std::uint32_t task : order) ids.push_back(TaskId{task});
    return tasks_of(in_order(graph, ids));
  };
  EXPECT_EQ(place({0, 3, 1, 2, 5, 6, 4}), "f b2 b3 u3 b1 u1 u2");
  EXPECT_THROW(static_cast<void>(place({0, 2, 1, 3, 4, 5, 6})), um::ContractError);  // u3 before b3
  EXPECT_THROW(static_cast<void>(place({1, 0, 2, 3, 4, 5, 6})), um::ContractError);  // b3 before f
  EXPECT_THROW(static_cast<void>(place({0, 1, 3, 4, 5, 6})), um::ContractError);
}

// As with a loss over a vocabulary: the forward pass makes the last layer's gradient. A block that
// an update and the forward pass read, such as t, is not a gradient.
TEST(GradientExchange, CountsGradientsThatAreMadeGoingForward) {
  TaskGraph graph = toy_graph("w1:1 w2:1 t:1 y:1 d:1 g1:1 g2:1",
                              "t = f(w1); y, d, g2 = loss(t, w2); g1 = b1(d);"
                              "w2 = u2(w2, g2, t); w1 = u1(w1, g1)");
  graph.tasks[2].phase = Phase::kBackward;
  graph.tasks[3].phase = graph.tasks[4].phase = Phase::kUpdate;
  graph.tasks[1].is_recomputable = true;
  const TaskGraph several = exchanged(std::move(graph), kBucketEach);
  EXPECT_EQ(buckets_of(several), "g2 after loss, g1 after b1");
  EXPECT_FALSE(several.tasks[1].is_recomputable);
}

TEST(GradientExchange, KeepsGradientsNearAndMakesThemOnce) {
  TaskGraph near = three_layers();
  near.tasks[1].is_recomputable = near.tasks[0].is_recomputable = true;
  const TaskGraph graph = exchanged(near, kBucketEach);
  for (const char* name : {"g1", "g2", "g3"})
    EXPECT_FALSE(graph[find_block(graph, name)].may_leave());
  EXPECT_TRUE(graph[find_block(graph, "t")].may_leave());
  EXPECT_TRUE(graph.tasks[0].is_recomputable);
  EXPECT_FALSE(graph.tasks[1].is_recomputable);
  EXPECT_NE(fingerprint(graph), fingerprint(exchanged(near, {.first = pages(9)})));
}

TEST(GradientExchange, RefusesAStepWithoutGradients) {
  TaskGraph graph = three_layers();
  for (Task& task : graph.tasks) task.phase = Phase::kForward;
  EXPECT_THROW(static_cast<void>(with_exchanges(graph)), um::Error);
}

TEST(GradientExchange, RefusesATaskThatUsesWhatWasUpdated) {
  TaskGraph graph = three_layers();
  add_tasks(graph, "t = again(w3)");
  EXPECT_THROW(static_cast<void>(exchanged(graph, kBucketEach)), um::Error);
}

// 6 messages of 5 ns, and 2 * 3/4 of 4 pages.
TEST(AllReduce, TakesWhatARingTakes) {
  const Interconnect four{.ranks = 4, .bandwidth = toy_link().offload, .latency = 5ns};
  const ExchangeTime own = all_reduce_time(pages(4), four, toy_link());
  EXPECT_EQ(own.alone, 90ns);
  EXPECT_EQ(own.outward, 0);
  EXPECT_EQ(own.inward, 0);
  EXPECT_EQ(all_reduce_time(pages(4), {.ranks = 1}, toy_link()).alone, 0ns);
}

// It sends during 60 of the 90 ns; on a link half as fast, during 120 of 150.
TEST(AllReduce, TakesNoMoreOfTheLinkThanThereIs) {
  const Interconnect four{
      .ranks = 4, .bandwidth = toy_link().offload, .latency = 5ns, .shares_link = true};
  EXPECT_NEAR(all_reduce_time(pages(4), four, toy_link()).outward, 60.0 / 90, 1e-9);
  LinkProfile slow = toy_link();
  slow.prefetch = um::Bandwidth{slow.prefetch.bytes_per_second() / 2};
  const ExchangeTime slower = all_reduce_time(pages(4), four, slow);
  EXPECT_EQ(slower.alone, 150ns);
  EXPECT_NEAR(slower.inward, 120.0 / 150, 1e-9);
  EXPECT_NEAR(slower.outward, 60.0 / 150, 1e-9);
  LinkProfile one_way = toy_link();
  one_way.is_duplex = false;
  const ExchangeTime in_turns = all_reduce_time(pages(4), four, one_way);
  EXPECT_EQ(in_turns.alone, 150ns);
  EXPECT_NEAR(in_turns.inward + in_turns.outward, 120.0 / 150, 1e-9);
}

TEST(AllReduce, TakesLongerAmongMoreRanks) {
  Interconnect interconnect = two_ranks();
  um::Nanoseconds before{0};
  for (std::uint32_t ranks = 2; ranks <= 1024; ranks *= 2) {
    interconnect.ranks = ranks;
    const um::Nanoseconds now = all_reduce_time(pages(4), interconnect, toy_link()).alone;
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(LinkShares, LetAMoveAndAnExchangeHaveHalfOfTheLinkEach) {
  const ExchangeTime most{.alone = 100ns, .outward = 0.8, .inward = 0.8};
  EXPECT_EQ(link_shares(most, true, false, false).exchange, 1);
  EXPECT_DOUBLE_EQ(link_shares(most, true, true, false).exchange, 0.625);
  EXPECT_DOUBLE_EQ(link_shares(most, true, true, false).offload, 0.5);
  EXPECT_DOUBLE_EQ(link_shares(most, true, false, true).prefetch, 0.5);
}

TEST(LinkShares, LetAnExchangeHaveAllOfTheLittleThatItTakes) {
  const ExchangeTime little{.alone = 100ns, .outward = 0.3, .inward = 0.2};
  const LinkShares shares = link_shares(little, true, true, true);
  EXPECT_EQ(shares.exchange, 1);
  EXPECT_DOUBLE_EQ(shares.offload, 0.7);
  EXPECT_DOUBLE_EQ(shares.prefetch, 0.8);
}

TEST(LinkShares, CountBothDirectionsOfAnExchangeWhereTheLinkHasOneAtATime) {
  const ExchangeTime both{.alone = 100ns, .outward = 0.4, .inward = 0.4};
  EXPECT_DOUBLE_EQ(link_shares(both, false, true, false).exchange, 0.625);
  EXPECT_DOUBLE_EQ(link_shares(both, false, true, false).offload, 0.5);
}

Interconnect random_interconnect() {
  return {.ranks = *rc::gen::inRange<std::uint32_t>(2, 1025),
          .bandwidth = um::Bandwidth{static_cast<double>(kPage.count()) /
                                     (1e-7 * *rc::gen::inRange(1, 200))},
          .latency = um::Nanoseconds{*rc::gen::inRange(0, 200)},
          .shares_link = *rc::gen::arbitrary<bool>()};
}

BucketRule random_buckets() {
  return {.first = pages(*rc::gen::inRange<std::uint64_t>(1, 6)),
          .others = pages(*rc::gen::inRange<std::uint64_t>(1, 12))};
}

// Checks by names of tasks alone: "bw..." makes "g...", "u..." uses it.
std::string broken_exchange(const TaskGraph& graph, const Plan& plan, const Timeline& timeline) {
  for (std::size_t i = 0; i < plan.exchanges.size(); ++i) {
    const Interval& exchange = timeline.exchanges[i];
    if (i > 0 && exchange.begin < timeline.exchanges[i - 1].end) return "two at once";
    for (const DataId id : graph.exchanges[plan.exchanges[i].exchange].blocks) {
      const std::string number = graph[id].name.substr(1);
      for (std::size_t r = 0; r < plan.runs.size(); ++r) {
        const std::string& name = graph[plan.runs[r].task].name;
        if (name == "bw" + number && timeline.runs[r].end > exchange.begin) return name;
        if (name == "u" + number && timeline.runs[r].begin < exchange.end) return name;
      }
    }
  }
  return "";
}

um::Nanoseconds length(const std::vector<Interval>& intervals) {
  um::Nanoseconds sum{0};
  for (const Interval& each : intervals) sum += each.end - each.begin;
  return sum;
}

// The step takes at least the time of its tasks, of its exchanges, and of its moves each way.
void expect_no_shortcut(const Timeline& timeline) {
  const um::Nanoseconds makespan = timeline.makespan();
  for (const auto* lane :
       {&timeline.runs, &timeline.offloads, &timeline.prefetches, &timeline.exchanges}) {
    RC_ASSERT(makespan >= length(*lane));
  }
}

RC_GTEST_PROP(EveryPlanner, ExchangesGradientsSoundly, ()) {
  const TaskGraph graph = exchanged(random_layers(*rc::gen::arbitrary<bool>()), random_buckets());
  Profile profile = random_profile(graph);
  profile.exchanges = exchange_times(graph, random_interconnect(), profile.link);
  const Problem given = random_problem(graph, profile);
  const Bounds bounds = lower_bounds(given);
  RC_ASSERT(bounds.mixed_transition >= exchange_bound(graph, profile));
  const um::Nanoseconds joint = simulate(planned("joint", given), profile).makespan();
  for (const auto& planner : planners()) {
    if (planner->name() == "on-demand" && !given.whole_blocks) continue;
    Problem enough = given;
    const Plan plan = planned_with_more(*planner, enough);
    const std::string broken = reason_against(graph, plan);
    if (!broken.empty()) RC_FAIL(std::string{planner->name()} + ": " + broken);
    const um::Nanoseconds makespan = simulate(plan, profile).makespan();
    if (plan.budget == given.budget) {
      RC_ASSERT(makespan + 2ns >=
                (planner->name() == "joint" ? bounds.any_order : bounds.mixed_transition));
      RC_ASSERT(makespan >= joint);
    }
    const SimulateOptions noise{.noise = 0.9, .seed = *rc::gen::arbitrary<std::uint64_t>()};
    const Timeline timeline = simulate(plan, profile, noise);
    expect_no_shortcut(timeline);
    const std::string wrong =
        check_trace(graph, plan, timeline, profile.link) + broken_exchange(graph, plan, timeline);
    if (!wrong.empty()) RC_FAIL(std::string{planner->name()} + ": " + wrong);
  }
}

// Planning with the times of exchanges is at least as good as without.
RC_GTEST_PROP(OffloadingAlone, IsNoSlowerForKnowingOfExchanges, ()) {
  const TaskGraph graph = exchanged(random_layers(*rc::gen::arbitrary<bool>()), random_buckets());
  Profile profile = random_profile(graph);
  profile.exchanges.assign(graph.exchanges.size(), {});
  const Problem given = random_problem(graph, profile);
  const char* const planner = *rc::gen::element("capacity", "fractional");
  const Plan unaware = planned(planner, given);
  profile.exchanges = exchange_times(graph, random_interconnect(), profile.link);
  const Plan aware = planned(planner, given);
  RC_ASSERT(simulate(aware, profile).makespan() <= simulate(unaware, profile).makespan());
}

// Without a shared link, a plan is not faster with more ranks.
RC_GTEST_PROP(APlan, IsNoFasterAmongMoreRanks, ()) {
  const TaskGraph graph = exchanged(random_layers(*rc::gen::arbitrary<bool>()), random_buckets());
  Profile profile = random_profile(graph);
  Interconnect interconnect = random_interconnect();
  interconnect.shares_link = false;
  profile.exchanges = exchange_times(graph, interconnect, profile.link);
  const Plan plan = planned("capacity", random_problem(graph, profile));
  const um::Nanoseconds few = simulate(plan, profile).makespan();
  interconnect.ranks += *rc::gen::inRange<std::uint32_t>(1, 1024);
  profile.exchanges = exchange_times(graph, interconnect, profile.link);
  RC_ASSERT(simulate(plan, profile).makespan() + 2ns >= few);
}

}  // namespace
}  // namespace spillway::prefetch
