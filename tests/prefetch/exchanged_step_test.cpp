// Exchanges of gradients between ranks, in a plan and in the simulated step.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/bounds/bounds.h"
#include "prefetch/far_update.h"
#include "prefetch/gradient_exchange.h"
#include "prefetch/interconnect.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/three_layers.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class ThreeExchanges : public ::testing::Test {
 protected:
  ThreeExchanges() {
    profile.exchanges = exchange_times(graph, two_ranks(), profile.link);
    add_exchanges(graph, plan);
  }
  TaskGraph graph = exchanged(three_layers(), kBucketEach);
  Profile profile = flat_profile(graph, 100ns);
  Plan plan = plain_plan_with_pool(graph, pages(1));
};

// f, b3, b2 and b1 run until 400. g3 is ready at 200; g3 takes 110, g2 210 and g1 110 in sequence,
// until 630. u3 follows b1; u2 begins at 520, u1 at 630.
TEST_F(ThreeExchanges, TakePlaceBesideTheRestOfTheBackwardPass) {
  EXPECT_EQ(reason_against(graph, plan), "");
  const Timeline timeline = simulate(plan, profile);
  const std::vector<Interval> exchanges{{200ns, 310ns}, {310ns, 520ns}, {520ns, 630ns}};
  EXPECT_EQ(timeline.exchanges, exchanges);
  EXPECT_EQ(timeline.runs[4], (Interval{400ns, 500ns}));
  EXPECT_EQ(timeline.runs[5], (Interval{520ns, 620ns}));
  EXPECT_EQ(timeline.runs[6], (Interval{630ns, 730ns}));
  EXPECT_EQ(timeline.makespan(), 730ns);
}

// The first exchange is ready at 200; then 430 on the lane, and an update.
TEST_F(ThreeExchanges, AreNoFasterThanTheirBound) {
  EXPECT_EQ(exchange_bound(graph, profile), 730ns);
  EXPECT_EQ(lower_bounds(problem(graph, profile, pages(1))).mixed_transition, 730ns);
}

// One exchange of 410 ns from 400 on, then three updates.
TEST_F(ThreeExchanges, AreFasterThanOneOfEverything) {
  const TaskGraph one = exchanged(three_layers(), {.first = pages(4)});
  Profile times = flat_profile(one, 100ns);
  times.exchanges = exchange_times(one, two_ranks(), times.link);
  Plan of_one = plain_plan_with_pool(one, pages(1));
  add_exchanges(one, of_one);
  EXPECT_EQ(simulate(of_one, times).makespan(), 1110ns);
  EXPECT_EQ(exchange_bound(one, times), 1110ns);
}

TEST_F(ThreeExchanges, AreNeverFasterAmongMoreRanks) {
  Interconnect interconnect = two_ranks();
  um::Nanoseconds before{0};
  for (std::uint32_t ranks = 2; ranks <= 1024; ranks *= 2) {
    interconnect.ranks = ranks;
    profile.exchanges = exchange_times(graph, interconnect, profile.link);
    const um::Nanoseconds now = simulate(plan, profile).makespan();
    EXPECT_GE(now, before);
    EXPECT_GE(now, exchange_bound(graph, profile));
    before = now;
  }
}

// Without waits they cost nothing: tasks alone take 700.
TEST_F(ThreeExchanges, CostNothingWhenTheyTakeNoTime) {
  profile.exchanges.assign(3, {});
  EXPECT_EQ(simulate(plan, profile).makespan(), 700ns);
}

// Tasks run at half speed beside an exchange. b2 does 55 of its 100 ns beside g3, until 310, and
// ends at 355. b1, all of it beside g2, ends at 555, ten before g2. u3 does 60 beside g2 and g1,
// until g1 ends at 675, and ends at 715. u2 and u1 follow.
TEST_F(ThreeExchanges, SlowTheTasksBesideThem) {
  for (ExchangeTime& time : profile.exchanges) time.compute_speed = 0.5;
  const Timeline timeline = simulate(plan, profile);
  const std::vector<Interval> exchanges{{200ns, 310ns}, {355ns, 565ns}, {565ns, 675ns}};
  EXPECT_EQ(timeline.exchanges, exchanges);
  EXPECT_EQ(timeline.runs[3], (Interval{355ns, 555ns}));
  EXPECT_EQ(timeline.runs[4], (Interval{555ns, 715ns}));
  EXPECT_EQ(timeline.makespan(), 915ns);
}

TEST_F(ThreeExchanges, MustWaitForTheirGradients) {
  plan.exchanges[1].after_runs = 2;
  EXPECT_EQ(reason_against(graph, plan), "b2 uses g2 while ranks may exchange it");
}

TEST_F(ThreeExchanges, MustBeWaitedForByUpdates) {
  plan.runs[5].after_exchanges = 1;
  EXPECT_EQ(reason_against(graph, plan), "u2 uses g2 while ranks may exchange it");
}

TEST_F(ThreeExchanges, MustTakePlaceOnce) {
  plan.exchanges[2].exchange = 1;
  EXPECT_EQ(reason_against(graph, plan), "bucket 2 is exchanged twice");
  plan.exchanges[2].exchange = 3;
  EXPECT_EQ(reason_against(graph, plan), "the plan names an exchange that is not there");
  plan.exchanges.pop_back();
  EXPECT_EQ(reason_against(graph, plan), "bucket 3 is never exchanged");
}

TEST_F(ThreeExchanges, MustNotBeWaitedForForEver) {
  plan.exchanges[0].after_runs = 5;
  EXPECT_EQ(reason_against(graph, plan), "u3 waits for ever for an exchange between ranks");
  plan.exchanges[0].after_runs = 8;
  EXPECT_EQ(reason_against(graph, plan), "bucket 1 waits for ever");
  add_exchanges(graph, plan);
  plan.runs[6].after_exchanges = 4;
  EXPECT_EQ(reason_against(graph, plan), "u1 waits for ever for an exchange between ranks");
}

TEST_F(ThreeExchanges, MustHaveGradientsThatStayNear) {
  const DataId g2 = find_block(graph, "g2");
  graph.data[static_cast<std::size_t>(g2)].is_offloadable = true;
  plan.graph = fingerprint(graph);
  EXPECT_EQ(reason_against(graph, plan), "g2 may be far while ranks exchange it");
}

TEST_F(ThreeExchanges, AreNothingForPageFaultsAlone) {
  plan.residency = Residency::kOnDemand;
  EXPECT_EQ(reason_against(graph, plan),
            "a plan that pages on demand exchanges nothing between ranks");
}

// From 200 on both share the link. The exchange, which takes 100 ns and three quarters of the link
// alone, runs at 2/3, and the offload's 40 ns at 1/2, until 280. Then 46.67 of the exchange are
// left.
TEST(ExchangeOnTheLink, SlowsAMoveAndIsSlowedByIt) {
  TaskGraph graph = toy_graph("w:1 y:4 g:1 z:1", "y = f(w); g = b(w); z = c(); w = u(w, g)");
  graph.tasks[1].phase = Phase::kBackward;
  graph.tasks[3].phase = Phase::kUpdate;
  graph = with_exchanges(graph, kBucketEach);
  Profile profile = flat_profile(graph, 100ns);
  profile.exchanges = {{.alone = 100ns, .outward = 0.75, .inward = 0.75}};
  Plan plan = plain_plan_with_pool(graph, pages(8));
  add_exchanges(graph, plan);
  plan.offloads = {{.data = find_block(graph, "y"), .size = pages(4), .after = {.runs = 2}}};
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(timeline.offloads[0], (Interval{200ns, 280ns}));
  EXPECT_EQ(timeline.exchanges[0], (Interval{200ns, 327ns}));
  EXPECT_EQ(timeline.makespan(), 427ns);
  profile.exchanges[0].outward = profile.exchanges[0].inward = 0;
  EXPECT_EQ(simulate(plan, profile).exchanges[0], (Interval{200ns, 300ns}));
  EXPECT_EQ(simulate(plan, profile).offloads[0], (Interval{200ns, 240ns}));
}

}  // namespace
}  // namespace spillway::prefetch
