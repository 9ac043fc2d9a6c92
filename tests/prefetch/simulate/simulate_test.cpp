#include "prefetch/simulate/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/simulate/timeline.h"
#include "tests/prefetch/toy.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Three tasks of 100 ns; b0 is offloaded after task 0 and returns for task 2.
class ThreeTasks : public ::testing::Test {
 protected:
  ThreeTasks() {
    const DataId b0{0};
    plan.runs = runs_in_order(graph);
    plan.offloads = {{.data = b0, .size = pages(5), .after = {.runs = 1}}};
    plan.prefetches = {{.data = b0, .size = pages(5), .after = {.runs = 1, .offloads = 1}}};
    plan.runs[2].after = {.prefetches = 1};
  }
  TaskGraph graph = toy_graph("b0:5 b1:1", "b0 = t0(); b1 = t1(); t2(b0, b1)");
  Profile profile = flat_profile(graph, 100ns);
  Plan plan;
};

// compute |t0 100|t1 100|t2 100|
// link           |o 50|p 50|
TEST_F(ThreeTasks, HideBothMovesBehindATask) {
  const Timeline timeline = simulate(plan, profile);
  EXPECT_EQ(timeline.makespan(), 300ns);
  EXPECT_EQ(timeline.offloads[0], (Interval{100ns, 150ns}));
  EXPECT_EQ(timeline.prefetches[0], (Interval{150ns, 200ns}));
}

// compute |t0 100|t1 100|          |t2 100|
// link           |o 50|  |p 50 after t1|
TEST_F(ThreeTasks, WaitForAPrefetchThatMayOnlyStartLate) {
  plan.prefetches[0].after.runs = 2;
  EXPECT_EQ(simulate(plan, profile).makespan(), 350ns);
}

TEST_F(ThreeTasks, PayLatencyOncePerMove) {
  profile.link.latency = 30ns;
  EXPECT_EQ(simulate(plan, profile).makespan(), 360ns);  // 50 + 30 + 50 + 30 behind a task of 100
}

TEST_F(ThreeTasks, TransferNothingForACleanOffload) {
  plan.offloads[0].is_clean = true;
  EXPECT_EQ(simulate(plan, profile).prefetches[0], (Interval{100ns, 150ns}));
}

// Half speed during a move: t1 does 50 ns of work in the first 100 ns and ends 50 ns later.
// compute |t0 100|t1 150     |t2 100|
// link           |o 50|p 50|
TEST_F(ThreeTasks, SlowDownWhereCopiesTakeProcessorTime) {
  profile.link.compute_speed_while_moving = 0.5;
  EXPECT_EQ(simulate(plan, profile).makespan(), 350ns);
}

// compute |t0 100|t1 100|    |t2 100|
// link           |o1 50|o2 50|p 50|       one engine for both directions
TEST_F(ThreeTasks, QueueBothDirectionsOnOneEngine) {
  profile.link.is_duplex = false;
  plan.offloads.push_back({.data = DataId{1}, .size = pages(5), .after = {.runs = 1}});
  EXPECT_EQ(simulate(plan, profile).makespan(), 350ns);
}

// b0 may be read until t1 has ended. A link that unmaps leaving blocks offloads it then; one that
// copies does so beside t1:
// compute |t0 100|t1 100|t2 100|
// link           |o 50|
TEST_F(ThreeTasks, OffloadBesideTheLastReaderWhereTheLinkCopies) {
  plan.offloads[0].free_after = 2;
  plan.prefetches.clear();
  plan.runs[2].after = {.runs = 2};
  profile.link.copies_while_read = true;
  EXPECT_EQ(simulate(plan, profile).offloads[0], (Interval{100ns, 150ns}));
  profile.link.copies_while_read = false;
  EXPECT_EQ(simulate(plan, profile).offloads[0], (Interval{200ns, 250ns}));
}

TEST_F(ThreeTasks, VaryWithNoiseAndRepeatWithItsSeed) {
  const SimulateOptions noisy{.noise = 0.1, .seed = 3};
  const Timeline first = simulate(plan, profile, noisy);
  EXPECT_NE(first.makespan(), 300ns);
  EXPECT_EQ(first.makespan(), simulate(plan, profile, noisy).makespan());
  EXPECT_LE(first.makespan(), 330ns);
  EXPECT_GE(first.makespan(), 270ns);
}

using Lines = std::vector<std::string>;

// Four tasks of 100 ns. Forward: f1 makes y (5 pages) and t (1 page); f2 consumes t, with the
// weights w (2 pages) and a workspace of 3. Backward: b1 makes d (1 page) from y; u consumes d.
class NearUse : public ::testing::Test {
 protected:
  NearUse() {
    graph_.add(DataBlock{.name = "s", .size = um::Bytes{100}, .kind = DataKind::kState});
    make_offloadable(graph_, w_);
    graph_.tasks[0].is_recomputable = true;
    graph_.tasks[1].algorithms = {{.workspace = pages(3)}};
    graph_.tasks[2].phase = Phase::kBackward;
    graph_.tasks[3].phase = Phase::kUpdate;
    plan_.page = kPage;
    plan_.runs = runs_in_order(graph_);
  }

  // Treats the plan as planned, even if it pages on demand: page faults take no time here.
  [[nodiscard]] Timeline timeline() const {
    Plan planned = plan_;
    planned.residency = Residency::kPlanned;
    Profile profile = flat_profile(graph_, 100ns);
    profile.link.copies_while_read = true;
    return simulate(planned, profile);
  }
  [[nodiscard]] std::vector<NearChange> changes() const {
    return near_changes(graph_, plan_, timeline());
  }
  // Returns "time pages purpose holder" for each change of whole pages by holders with a name that
  // ends in `end`.
  [[nodiscard]] Lines lines(const std::string& end = "") const {
    Lines all;
    for (const NearChange& change : changes()) {
      if (change.purpose == NearPurpose::kPinned) continue;
      const bool is_run = change.purpose == NearPurpose::kWorkspace;
      const std::string holder =
          is_run ? graph_[plan_.runs[change.holder].task].name : graph_.data[change.holder].name;
      if (!holder.ends_with(end)) continue;
      const std::int64_t count = change.bytes / static_cast<std::int64_t>(kPage.count());
      all.push_back(std::to_string(change.time.count()) + (count < 0 ? " " : " +") +
                    std::to_string(count) + " " + to_string(change.purpose) + " " + holder);
    }
    return all;
  }

  TaskGraph graph_ = toy_graph("w:2 y:5 t:1 d:1", "y, t = f1(); f2(t, w); d = b1(y); u(d)");
  DataId w_{0};
  DataId y_{1};
  Plan plan_;
};

TEST_F(NearUse, FollowsWhatEachBlockIsFor) {
  EXPECT_EQ(lines(), (Lines{"0 +1 passing t", "0 +2 state w", "0 +5 saved y", "100 +3 workspace f2",
                            "200 -3 workspace f2", "200 -1 passing t", "200 +1 gradient d",
                            "300 -5 saved y", "400 -1 gradient d"}));
}

TEST_F(NearUse, BeginsWithAllThatIsPinned) {
  const NearChange first = changes().front();

  EXPECT_EQ(first.time, 0ns);
  EXPECT_EQ(first.purpose, NearPurpose::kPinned);
  EXPECT_EQ(first.bytes, 128);  // 100 bytes of state, rounded up to 64
}

// y leaves from 100 to 150 ns and returns from 150 to 200.
TEST_F(NearUse, FollowsMoves) {
  plan_.offloads = {{.data = y_, .size = pages(5), .after = {.runs = 1}}};
  plan_.prefetches = {{.data = y_, .size = pages(5), .after = {.runs = 1, .offloads = 1}}};
  plan_.runs[2].after = {.prefetches = 1};

  EXPECT_EQ(lines(),
            (Lines{"0 +1 passing t", "0 +2 state w", "0 +5 saved y", "100 +3 workspace f2",
                   "150 -5 saved y", "150 +5 saved y", "200 -3 workspace f2", "200 -1 passing t",
                   "200 +1 gradient d", "300 -5 saved y", "400 -1 gradient d"}));
}

// The copy has ended at 150 ns, but f2 may still read y until 200; its end permits the prefetch.
TEST_F(NearUse, KeepsTheRoomOfWhatMayStillBeRead) {
  plan_.offloads = {{.data = y_, .size = pages(5), .after = {.runs = 1}, .free_after = 2}};
  plan_.prefetches = {{.data = y_, .size = pages(5), .after = {.runs = 2, .offloads = 1}}};
  plan_.runs[2].after = {.prefetches = 1};

  const Lines all = lines();
  EXPECT_EQ(std::ranges::count(all, "200 -5 saved y"), 1);
  EXPECT_EQ(std::ranges::count(all, "200 +5 saved y"), 1);
  EXPECT_EQ(std::ranges::count(all, "150 -5 saved y"), 0);
}

// w is far between steps: it is prefetched for f2 at once and has left 20 ns after f2.
TEST_F(NearUse, BeginsWithoutStateThatIsFarBetweenSteps) {
  plan_.prefetches = {{.data = w_, .size = pages(2)}};
  plan_.runs[1].after = {.prefetches = 1};
  plan_.offloads = {{.data = w_, .size = pages(2), .after = {.runs = 2, .prefetches = 1}}};

  EXPECT_EQ(lines("w"), (Lines{"0 -2 state w", "0 +2 state w", "0 +2 state w", "220 -2 state w"}));
}

// f1 runs again before b1: its outputs are gone until 200 ns (y from 100 on, as f2 does not read
// it), and back from 200 to 400.
TEST_F(NearUse, GivesARecomputedBlockTwoLives) {
  plan_.runs.insert(plan_.runs.begin() + 2, plan_.runs[0]);
  plan_.runs[2].is_recomputation = true;

  EXPECT_EQ(lines("y"),
            (Lines{"0 +5 saved y", "100 -5 saved y", "200 +5 saved y", "400 -5 saved y"}));
}

TEST_F(NearUse, OfPagingOnDemandIsOfLiveBlocks) {
  const Lines planned = lines();
  plan_.residency = Residency::kOnDemand;

  EXPECT_EQ(lines(), planned);
}

TEST_F(NearUse, WantsTheTimelineOfAllRuns) {
  Timeline shorter = timeline();
  shorter.runs.pop_back();

  EXPECT_THROW(static_cast<void>(near_changes(graph_, plan_, shorter)), um::ContractError);
}

}  // namespace
}  // namespace spillway::prefetch
