#include "src/plan/bucket_choice.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "prefetch/interconnect.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/simulate/simulate.h"
#include "src/plan/predicted_step.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/three_layers.h"

namespace spillway {
namespace {

using namespace prefetch::testing;
using prefetch::BucketRule;
using prefetch::TaskGraph;
using um::Bytes;
using um::Nanoseconds;

// A page of the toy graphs is a mebibyte here.
constexpr Bytes kPageHere{1ULL << 20U};

constexpr BucketRule rule_of(std::uint64_t first, std::uint64_t others) {
  return {.first = first * kPageHere, .others = others * kPageHere};
}

TaskGraph enlarged(TaskGraph graph) {
  for (prefetch::DataBlock& block : graph.data) {
    block.size = Bytes{block.size.count() / kPage.count() * kPageHere.count()};
  }
  return graph;
}

// A step, and what its ranks exchange gradients over.
struct RankSteps {
  TaskGraph graph;  // of one rank alone
  prefetch::Profile profile;
  prefetch::Interconnect interconnect;
  std::optional<Bytes> budget{};  // else all fits

  [[nodiscard]] std::optional<Nanoseconds> time(const BucketRule& rule,
                                                const prefetch::Planner& planner) const {
    const TaskGraph several = exchanged(graph, rule);
    prefetch::Profile times = profile_for(several, graph, profile);
    times.exchanges = exchange_times(several, interconnect, times.link);
    const prefetch::NearNeed need = near_need(several, prefetch::BlockSizes{several, kPageHere});
    const auto planned = planner.plan({.graph = several,
                                       .profile = times,
                                       .budget = budget.value_or(need.resident),
                                       .page = kPageHere,
                                       .chunk = kPageHere});
    const auto* const plan = std::get_if<prefetch::Plan>(&planned);
    if (plan == nullptr) return std::nullopt;
    return prefetch::simulate(several, *plan, times).makespan();
  }
  [[nodiscard]] Nanoseconds time(const BucketRule& rule) const {
    return time(rule, prefetch::find_planner("capacity")).value();
  }
  [[nodiscard]] BucketRule chosen(const BucketRule& usual = {},
                                  std::string_view planner = "capacity") const {
    return choose_buckets(
        graph, usual, {.planner = &prefetch::find_planner(planner)},
        [&](const BucketRule& rule, const PlanRequest& by) { return time(rule, *by.planner); });
  }
};

// Two ranks, which send a mebibyte in 100 ns, and two messages; every task takes 100 ns.
RankSteps three_layers_with(Nanoseconds latency) {
  TaskGraph graph = enlarged(three_layers());
  prefetch::Profile profile = flat_profile(graph, Nanoseconds{100});
  return {
      .graph = std::move(graph),
      .profile = std::move(profile),
      .interconnect = {.ranks = 2,
                       .bandwidth = um::Bandwidth{static_cast<double>(kPageHere.count()) / 1e-7},
                       .latency = latency}};
}

// All gradients, of 1, 2 and 1 MiB, are complete when the last task before updates, which take no
// time, has run: at 200 ns.
RankSteps all_at_once_with(Nanoseconds latency) {
  TaskGraph graph = toy_graph("w1:1 w2:1 w3:1 t:1 g1:1 g2:2 g3:1",
                              "t = f(w1, w2, w3); g1, g2, g3 = b(t);"
                              "w1 = u1(w1, g1); w2 = u2(w2, g2); w3 = u3(w3, g3)");
  RankSteps steps = three_layers_with(latency);
  graph.tasks[1].phase = prefetch::Phase::kBackward;
  for (std::size_t w = 0; w < 3; ++w) {
    graph.tasks[w + 2].phase = prefetch::Phase::kUpdate;
    graph.data[w].kind = prefetch::DataKind::kState;
  }
  steps.graph = enlarged(std::move(graph));
  steps.profile = flat_profile(steps.graph, Nanoseconds{100});
  for (std::size_t t = 2; t < 5; ++t) steps.profile.durations[t] = {Nanoseconds{0}};
  return steps;
}

// Of 1, 2 and 1 MiB: the usual 1 and 3; each alone; 3 and 1; all in one.
TEST(BucketCandidates, AreEachWayToFillBucketsOnce) {
  const std::vector<BucketRule> expected{BucketRule{}, rule_of(1, 1), rule_of(2, 2), rule_of(4, 4)};
  EXPECT_EQ(bucket_candidates(enlarged(three_layers())), expected);
}

TEST(BucketCandidates, AreTheSameOfAStepThatHasExchanges) {
  const TaskGraph graph = enlarged(three_layers());
  EXPECT_EQ(bucket_candidates(exchanged(graph, rule_of(4, 4))), bucket_candidates(graph));
}

TEST(BucketCandidates, AreTheUsualAloneWhereThatIsAllInOne) {
  const BucketRule usual;
  EXPECT_EQ(bucket_candidates(three_layers()), std::vector{usual});  // 16 KiB
}

// f, b3, b2 and b1 until 400 ns; then u3, u2, u1. Each gradient alone: g3 from 200 until 310, g2
// until 520, g1 until 630 and u1. The usual: g3 likewise, g2 and g1 from 400 until 710, two
// updates. All in one: from 400 until 810, and all updates.
TEST(BucketChoice, TakesSmallOnesThatAreHidden) {
  const RankSteps steps = three_layers_with(Nanoseconds{5});
  EXPECT_EQ(steps.time(rule_of(1, 1)), Nanoseconds{730});
  EXPECT_EQ(steps.time(BucketRule{}), Nanoseconds{910});
  EXPECT_EQ(steps.time(rule_of(4, 4)), Nanoseconds{1110});
  EXPECT_EQ(steps.chosen(), rule_of(1, 1));
}

// Two messages of 1000 ns a bucket. Each gradient alone: g3 until 2300, g2 until 4500, g1 until
// 6600 and u1. All in one: until 2800, and all updates.
TEST(BucketChoice, TakesLargeOnesWhereMessagesTakeLong) {
  const RankSteps steps = three_layers_with(Nanoseconds{1000});
  EXPECT_EQ(steps.time(rule_of(1, 1)), Nanoseconds{6700});
  EXPECT_EQ(steps.time(rule_of(4, 4)), Nanoseconds{3100});
  EXPECT_EQ(steps.chosen(), rule_of(4, 4));
}

// 4 MiB from 200 ns on, and 10 ns a bucket.
TEST(BucketChoice, TakesTheFewestWhereNothingIsHidden) {
  const RankSteps steps = all_at_once_with(Nanoseconds{5});
  EXPECT_EQ(steps.time(BucketRule{}), Nanoseconds{620});
  EXPECT_EQ(steps.time(rule_of(4, 4)), Nanoseconds{610});
  EXPECT_EQ(steps.chosen(), rule_of(4, 4));
}

TEST(BucketChoice, TakesTheFewestOfEqualOnes) {
  const RankSteps steps = all_at_once_with(Nanoseconds{0});
  EXPECT_EQ(steps.time(BucketRule{}), steps.time(rule_of(4, 4)));
  EXPECT_EQ(steps.chosen(), rule_of(4, 4));
  EXPECT_EQ(steps.chosen(rule_of(1, 1)), rule_of(4, 4));
}

TEST(BucketChoice, LooksAtTheBestTwoWithJoint) {
  const TaskGraph graph = enlarged(three_layers());
  std::vector<BucketRule> by_joint;
  const BucketRule rule = choose_buckets(
      graph, {}, {.planner = &prefetch::find_planner("joint")},
      [&](const BucketRule& each, const PlanRequest& request) -> std::optional<Nanoseconds> {
        const bool is_joint = request.planner->name() == "joint";
        if (is_joint) by_joint.push_back(each);
        return Nanoseconds{each == rule_of(2, 2) || is_joint ? 1 : 2};
      });
  EXPECT_EQ(by_joint, (std::vector{rule_of(2, 2), rule_of(4, 4), BucketRule{}}));
  EXPECT_EQ(rule, rule_of(4, 4)) << "of equal ones the fewest";
}

TEST(BucketChoice, IsTheUsualWhereNothingFits) {
  RankSteps steps = three_layers_with(Nanoseconds{1000});
  steps.budget = Bytes{1};
  EXPECT_EQ(steps.chosen(rule_of(2, 1)), rule_of(2, 1));
}

RC_GTEST_PROP(BucketChoice, IsNeverSlowerThanTheUsual, ()) {
  RankSteps steps{.graph = enlarged(random_layers(*rc::gen::arbitrary<bool>()))};
  steps.profile = random_profile(steps.graph);
  const double mebibytes = 1e7 / *rc::gen::inRange(1, 200);  // a second
  steps.profile.link.offload = um::Bandwidth{mebibytes * static_cast<double>(kPageHere.count())};
  steps.profile.link.prefetch = steps.profile.link.offload;
  steps.interconnect = {.ranks = *rc::gen::inRange<std::uint32_t>(2, 65),
                        .bandwidth = um::Bandwidth{static_cast<double>(kPageHere.count()) /
                                                   (1e-7 * *rc::gen::inRange(1, 200))},
                        .latency = Nanoseconds{*rc::gen::inRange(0, 200)},
                        .shares_link = *rc::gen::arbitrary<bool>()};
  const BucketRule usual = *rc::gen::element(BucketRule{}, rule_of(2, 5));
  const TaskGraph several = exchanged(steps.graph, usual);
  const prefetch::NearNeed need = near_need(several, prefetch::BlockSizes{several, kPageHere});
  const std::uint64_t slack = (need.resident - need.smallest) / kPageHere;
  steps.budget = need.smallest + *rc::gen::inRange<std::uint64_t>(0, slack + 1) * kPageHere;
  const auto* const planner = *rc::gen::element("joint", "capacity", "fractional", "superneurons");
  const prefetch::Planner& asked = prefetch::find_planner(planner);
  const std::optional<Nanoseconds> before = steps.time(usual, asked);
  if (!before) return;
  const std::optional<Nanoseconds> after = steps.time(steps.chosen(usual, planner), asked);
  RC_ASSERT(after.has_value());
  RC_ASSERT(*after <= *before);
}

}  // namespace
}  // namespace spillway
