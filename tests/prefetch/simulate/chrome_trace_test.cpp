#include "prefetch/simulate/chrome_trace.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "prefetch/simulate/paging_model.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/state_home.h"
#include "prefetch/verify/verify.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/prefetch/three_layers.h"
#include "tests/prefetch/toy.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using nlohmann::json;

// Near memory never exceeds the peak that verify() promises. At the end it holds only pinned
// blocks, and state that is near between steps.
RC_GTEST_PROP(MemoryCurve, StaysBelowTheVerifiedPeak, ()) {
  const TaskGraph graph = random_graph();
  const Profile profile = random_profile(graph);
  Problem given = problem(graph, profile, {});
  given.budget = near_need(graph, BlockSizes{graph, kPage}).smallest +
                 pages(*rc::gen::inRange<std::uint64_t>(0, 6));
  given.may_recompute = *rc::gen::arbitrary<bool>();
  const Plan plan = planned("fractional", given);
  const um::Bytes peak = std::get<Verified>(verify(graph, plan)).peak;
  const auto curve = memory_curve(graph, plan, simulate(plan, profile));
  um::Nanoseconds previous{-1};
  for (const MemorySample& sample : curve) {
    RC_ASSERT(sample.near <= peak);
    RC_ASSERT(sample.time > previous);
    previous = sample.time;
  }
  const BlockSizes block_sizes{graph, kPage};
  um::Bytes state = block_sizes.pinned();
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (graph.data[i].is_offloadable) state += block_sizes.size(DataId(i));
  }
  RC_ASSERT(curve.back().near == state - StateHome(graph, block_sizes, plan).far());
}

// load writes y0 (0 to 100 ns), f1 reads it and writes y1 (100 to 200), the loss reads y1 and
// writes d1 (200 to 300), b1 reads y0, y1, d1 and writes d0 (300 to 400). One page each.
TEST(MemoryCurve, RisesAndFallsWithTheBlocksAndNeedsATimelineOfAllRuns) {
  const TaskGraph graph = chain(1, pages(1));
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = planned("fractional", problem(graph, profile, pages(4)));
  std::vector<std::uint64_t> near;
  for (const MemorySample& sample : memory_curve(graph, plan, simulate(plan, profile))) {
    near.push_back(sample.near / kPage);
  }
  EXPECT_EQ(near, (std::vector<std::uint64_t>{1, 2, 3, 4, 0}));
  EXPECT_THROW(static_cast<void>(memory_curve(graph, plan, {})), um::ContractError);
  Timeline cut_short = simulate(plan, profile);
  cut_short.runs.pop_back();
  EXPECT_THROW(static_cast<void>(memory_curve(graph, plan, cut_short)), um::ContractError);
}

class ChromeTrace : public ::testing::Test {
 protected:
  ChromeTrace() {
    const Timeline timeline = simulate(plan, profile);
    trace = to_chrome_trace(graph, plan, {{"predicted", timeline}, {"measured", timeline}});
  }
  TaskGraph graph = chain(6, pages(2));
  Profile profile = flat_profile(graph, 100ns);
  Plan plan = planned("fractional", problem(graph, profile, pages(14)));
  json trace;
};

TEST_F(ChromeTrace, HasAProcessATimelineAndALaneAQueue) {
  std::map<std::pair<int, std::string>, std::size_t> spans;
  std::map<std::pair<int, int>, std::string> lanes;
  std::map<int, std::string> processes;
  for (const json& event : trace.at("traceEvents")) {
    const int process = event.at("pid");
    if (event.at("name") == "process_name") processes[process] = event.at("args").at("name");
    if (event.at("name") == "thread_name") {
      lanes[{process, event.at("tid")}] = event.at("args").at("name");
    }
    if (event.at("ph") == "X") ++spans[{process, lanes.at({process, event.at("tid")})}];
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{1, "predicted"}, {2, "measured"}}));
  ASSERT_FALSE(plan.offloads.empty());
  for (const int process : {1, 2}) {
    EXPECT_EQ((spans[{process, "compute"}]), plan.runs.size());
    EXPECT_EQ((spans[{process, "offload (near to far)"}]), plan.offloads.size());
    EXPECT_EQ((spans[{process, "prefetch (far to near)"}]), plan.prefetches.size());
  }
}

TEST_F(ChromeTrace, HasNoNegativeTimesAndNoOverlapInALane) {
  std::map<std::pair<int, int>, double> end;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts");
    const double duration = event.at("dur");
    double& previous = end[{event.at("pid"), event.at("tid")}];
    EXPECT_GE(duration, 0);
    EXPECT_GE(begin, previous - 1e-6);
    previous = begin + duration;
  }
  EXPECT_EQ(json::parse(trace.dump()), trace);
}

// A network may need less than a MiB.
TEST_F(ChromeTrace, CountsNearMemoryInBytes) {
  std::vector<std::uint64_t> expected;
  for (const MemorySample& sample : memory_curve(graph, plan, simulate(plan, profile))) {
    expected.push_back(sample.near.count());
  }
  std::vector<std::uint64_t> counted;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "C" || event.at("pid") != 1) continue;
    counted.push_back(event.at("args").at("in use"));
    EXPECT_EQ(event.at("args").at("budget"), plan.budget.count());
  }
  EXPECT_EQ(counted, expected);
}

// The holders of near memory add up to the curve, at each of its moments.
TEST_F(ChromeTrace, SaysWhoHoldsNearMemory) {
  const Timeline timeline = simulate(plan, profile);
  const json& holders = trace.at("spillway").at("near").at("2");
  for (const MemorySample& sample : memory_curve(graph, plan, timeline)) {
    const double moment = static_cast<double>(sample.time.count()) * 1e-3;
    std::uint64_t near = 0;
    for (const json& holder : holders) {
      std::uint64_t bytes = 0;
      for (const json& from : holder.at("bytes_from")) {
        if (from.at(0) <= moment) bytes = from.at(1);
      }
      near += bytes;
    }
    EXPECT_EQ(near, sample.near.count()) << moment;
  }
  EXPECT_EQ(trace.at("spillway").at("budget_bytes"), plan.budget.count());
}

// f1 and, in the backward pass, b1 read y0: saved. The backward pass makes d1.
TEST_F(ChromeTrace, SaysWhatNearMemoryIsFor) {
  std::map<std::string, std::string> purposes;
  for (const json& holder : trace.at("spillway").at("near").at("1")) {
    purposes[holder.at("name")] = holder.at("purpose");
  }
  EXPECT_EQ(purposes.at("y0"), "saved");
  EXPECT_EQ(purposes.at("d1"), "gradient");
}

// Exchanges: 200 to 310 ns, 310 to 520, 520 to 630.
TEST(ChromeTraceOfOneOfSeveralRanks, HasALaneForExchanges) {
  const TaskGraph graph = exchanged(three_layers(), kBucketEach);
  Profile profile = flat_profile(graph, 100ns);
  profile.exchanges = exchange_times(graph, two_ranks(), profile.link);
  const Plan plan = planned("resident", problem(graph, profile, pages(1)));
  const json trace = to_chrome_trace(graph, plan, {{"predicted", simulate(plan, profile)}});
  std::map<std::string, json> spans;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") spans[event.at("name")] = event;
  }
  EXPECT_NEAR(spans.at("bucket 2").at("ts").get<double>(), 0.31, 1e-9);
  EXPECT_NEAR(spans.at("bucket 2").at("dur").get<double>(), 0.21, 1e-9);
  EXPECT_EQ(spans.at("bucket 2").at("args").at("bytes"), pages(2).count());
  EXPECT_NE(trace.dump().find("exchange (between ranks)"), std::string::npos);
}

TEST(ChromeTraceOfPageFaults, HasALaneForThem) {
  const TaskGraph graph =
      toy_graph("a:3 b:3", "a = write a(); b = write b(); read a(a); read b(b)");
  const Profile profile = flat_profile(graph, 100ns);
  const Plan plan = planned("on-demand", problem(graph, profile, pages(4)));
  const Timeline timeline = simulate(graph, plan, profile);
  const json trace = to_chrome_trace(graph, plan, {{"predicted", timeline}});
  EXPECT_NE(trace.dump().find("page faults"), std::string::npos);
  std::uint64_t faults = 0;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") faults += event.at("args").value("faults", std::uint64_t{0});
    if (event.at("name") != "3 faults of write a") continue;
    EXPECT_EQ(event.at("ts"), 0);
    EXPECT_EQ(event.at("args").at("bytes_in"), pages(3).count());
  }
  EXPECT_EQ(faults, page_on_demand(graph, plan, profile).faults);
}

}  // namespace
}  // namespace spillway::prefetch
