// Plans of every planner for random steps of one of several ranks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "prefetch/bounds/bounds.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_layers.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/three_layers.h"
#include "tests/prefetch/trace_checker.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

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

// By the names of tasks alone: "bw..." makes "g...", "u..." uses it.
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

// The step takes no less than its tasks, than its exchanges and than what moves each way.
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
  const um::Nanoseconds bound = lower_bounds(given).mixed_transition;
  RC_ASSERT(bound >= exchange_bound(graph, profile));
  const um::Nanoseconds joint = simulate(planned("joint", given), profile).makespan();
  for (const auto& planner : planners()) {
    if (planner->name() == "on-demand" && !given.whole_blocks) continue;
    Problem enough = given;
    const Plan plan = planned_with_more(*planner, enough);
    const std::string broken = reason_against(graph, plan);
    if (!broken.empty()) RC_FAIL(std::string{planner->name()} + ": " + broken);
    const um::Nanoseconds makespan = simulate(plan, profile).makespan();
    if (plan.budget == given.budget) {
      RC_ASSERT(makespan + 2ns >= bound);
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

// Who knows what exchanges take plans no worse than who takes them to cost nothing.
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

// Beside the link, where nothing shares anything, a plan is no faster among more ranks.
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
