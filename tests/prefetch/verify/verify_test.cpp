#include "prefetch/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/trace_checker.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// A capacity plan for a chain of six layers at three quarters of its need, with moves to tamper
// with.
class VerifyTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string reason() const { return reason_against(graph, plan); }

  TaskGraph graph = chain(6, pages(2));
  Profile profile = flat_profile(graph, 100ns);
  Plan plan = planned("fractional", problem(graph, profile, pages(14)));
};

TEST_F(VerifyTest, AcceptsAPlannersPlanAndKnowsItsPeak) {
  ASSERT_FALSE(plan.offloads.empty());
  const auto result = verify(graph, plan);
  ASSERT_TRUE(std::holds_alternative<Verified>(result)) << reason();
  EXPECT_LE(std::get<Verified>(result).peak, pages(14));
  EXPECT_GT(std::get<Verified>(result).peak, pages(12));
}

TEST_F(VerifyTest, RefusesAPlanForAnotherGraph) {
  graph.tasks[0].name = "other";
  EXPECT_EQ(reason(), "the plan was made for another task graph");
}

TEST_F(VerifyTest, RefusesAPageThatIsNone) {
  plan.page = 6_KiB;
  EXPECT_EQ(reason(), "the page is no power of two");
  for (const um::Bytes page : {1_B, 2_KiB, 4_MiB}) {
    plan.page = page;
    EXPECT_EQ(reason(), "the page is smaller than 4 KiB or larger than 2 MiB");
  }
}

// A block of 2^38 pages, for which a table would take terabytes.
TEST_F(VerifyTest, LooksAtNoPagesOfBlocksThatNothingMoves) {
  graph = chain(2, um::Bytes{1ULL << 50U});
  plan = plain_plan(graph, um::Bytes{1ULL << 53U});
  EXPECT_EQ(reason(), "");
}

// One defect of the plan, and a part of its refusal.
struct Spoilt {
  void (*spoil)(Plan& plan);
  const char* cause;
};

constexpr std::array kSpoilt{
    Spoilt{[](Plan& plan) { plan.budget -= kPage; }, ") begins, more than its budget"},
    Spoilt{[](Plan& plan) { plan.runs.pop_back(); }, "b1 never runs"},
    Spoilt{[](Plan& plan) { std::swap(plan.runs[1], plan.runs[2]); },
           "f2 reads y1 before anything"},
    Spoilt{[](Plan& plan) { std::swap(plan.runs[0], plan.runs[1]); },
           "f1 runs before the batch is loaded"},
    Spoilt{[](Plan& plan) { plan.runs[2].task = TaskId{1}; },
           "f1 runs twice without being a recomputation"},
    // A prefetch is missing.
    Spoilt{[](Plan& plan) {
             plan.prefetches.pop_back();
             const auto left = static_cast<std::uint32_t>(plan.prefetches.size());
             for (TaskRun& run : plan.runs) {
               run.after.prefetches = std::min(run.after.prefetches, left);
             }
           },
           "is not all near when "},
    // Runs do not wait for prefetches, or for room.
    Spoilt{[](Plan& plan) {
             for (TaskRun& run : plan.runs) run.after.prefetches = 0;
           },
           "is not all near when "},
    Spoilt{[](Plan& plan) {
             for (TaskRun& run : plan.runs) run.after.offloads = 0;
           },
           "more than its budget"},
    // Prefetches overtake their offloads, or come too early for their room.
    Spoilt{[](Plan& plan) { plan.prefetches.front().after.offloads = 0; },
           "does not wait for its offload"},
    Spoilt{[](Plan& plan) {  // waits only for the offloads before its own
             Move& back = plan.prefetches.front();
             const auto away = std::ranges::find(plan.offloads, back.data, &Move::data);
             back.after.offloads = static_cast<std::uint32_t>(away - plan.offloads.begin());
           },
           "does not wait for its offload"},
    Spoilt{[](Plan& plan) {
             for (Move& move : plan.prefetches) move.after.runs = 0;
           },
           "more than its budget"},
    Spoilt{[](Plan& plan) { plan.offloads.front().after.runs = 0; },
           "is offloaded while it is in use"},
    Spoilt{[](Plan& plan) { plan.offloads.front().is_clean = true; },
           "is freed without a valid far copy"},
    Spoilt{[](Plan& plan) { plan.offloads.front().size += pages(2); }, "does not lie inside it"},
    Spoilt{[](Plan& plan) { plan.offloads.front().offset += 1_B; }, "does not lie inside it"},
    Spoilt{[](Plan& plan) { plan.offloads.front().data = DataId{1000}; },
           "names a block that is not there"},
    Spoilt{[](Plan& plan) { plan.runs.front().after.offloads = 1; }, "waits for ever"},
    // A link that does not copy beside readers would make such a prefetch wait for ever.
    Spoilt{[](Plan& plan) { plan.prefetches.front().free_after = 12; },
           "as only an offload can be"},
    Spoilt{[](Plan& plan) { plan.prefetches.front().is_clean = true; },
           "as only an offload can be"},
};

TEST_F(VerifyTest, RefusesAPlanThatIsSpoiltInOnePlace) {
  const Plan good = plan;
  for (const Spoilt& spoilt : kSpoilt) {
    plan = good;
    spoilt.spoil(plan);
    EXPECT_NE(reason().find(spoilt.cause), std::string::npos) << spoilt.cause << ": " << reason();
  }
}

// The room of a block that is copied while it is read is free only when its readers have ended.
TEST_F(VerifyTest, RefusesToCountOnTheRoomOfABlockInUse) {
  profile.link.copies_while_read = true;
  plan = planned("fractional", problem(graph, profile, pages(14)));
  ASSERT_EQ(reason(), "");
  const auto early = std::ranges::find_if(
      plan.offloads, [](const Move& move) { return move.free_after > move.after.runs; });
  ASSERT_NE(early, plan.offloads.end());
  const auto count = static_cast<std::uint32_t>(early - plan.offloads.begin()) + 1;
  const Plan good = plan;
  plan.runs[early->free_after - 1].after.offloads = count;
  EXPECT_NE(reason().find("counts on the room of a block in use"), std::string::npos);
  plan = good;
  Move& back = plan.prefetches.front();
  ASSERT_GE(back.after.offloads, count);
  std::uint32_t room = 0;
  for (std::uint32_t i = 0; i < back.after.offloads; ++i) {
    const Move& away = plan.offloads[i];
    if (away.free_after > away.after.runs) room = std::max(room, away.free_after);
  }
  back.after.runs = room - 1;
  EXPECT_EQ(reason(),
            "a prefetch of " + graph[back.data].name + " counts on the room of a block in use");
}

// Both tasks move the same statistics; the first one runs again after the second.
TEST_F(VerifyTest, TakesARecomputationForOneThatMovesNoStatistics) {
  TaskGraph moving = toy_graph("a:1 b:1 s:1", "a = load(); b = double(a); b = use(a,b)");
  moving.data[2].kind = DataKind::kState;
  for (const std::size_t task : {0U, 1U}) moving.tasks[task].updates_once = {DataId{2}};
  moving.tasks[0].is_recomputable = true;
  moving.tasks[2].phase = Phase::kBackward;
  Plan again = plain_plan(moving, pages(4));
  again.runs.insert(again.runs.begin() + 2, {.task = TaskId{0}, .is_recomputation = true});
  EXPECT_EQ(reason_against(moving, again), "");
}

TEST_F(VerifyTest, RefusesARecomputationThatReadsOtherValues) {
  // f2 updates y1 in place: rerunning f1 and f2 is correct; rerunning only f2 would read its own
  // output.
  TaskGraph inplace = toy_graph("a:1 b:1", "a = load(); a = double(a); b = use(a)");
  inplace.tasks[1].is_recomputable = true;
  inplace.tasks[2].phase = Phase::kBackward;
  Plan again = plain_plan(inplace, pages(4));
  again.runs.insert(again.runs.begin() + 2, {.task = TaskId{1}, .is_recomputation = true});
  EXPECT_EQ(reason_against(inplace, again),
            "the recomputation of double reads other values than its first run");
}

TEST_F(VerifyTest, AcceptsARecomputationThatLeavesRunningStatisticsAlone) {
  TaskGraph norm = chain(2, pages(1));
  const DataId running =
      norm.add(DataBlock{.name = "running", .size = 8_B, .kind = DataKind::kState});
  norm.tasks[1].updates_once = {running};
  Plan again = plain_plan(norm, pages(9));
  again.runs.insert(again.runs.begin() + 4, {.task = TaskId{1}, .is_recomputation = true});
  EXPECT_EQ(reason_against(norm, again), "");
}

TEST_F(VerifyTest, AcceptsPagingOnDemandWhenEachTaskFits) {
  plan = plain_plan(graph, pages(8));
  plan.residency = Residency::kOnDemand;
  EXPECT_EQ(reason(), "");
  plan.budget = pages(7);
  EXPECT_NE(reason(), "");
}

// "make" writes y, "use" and "last" read it. It is far while "fill" and "again", which need its
// room, run: it leaves after "make", returns for "use", leaves a second time and returns for
// "last".
class TwoSwaps : public ::testing::Test {
 protected:
  TwoSwaps() {
    const auto whole = [&](const Progress& after) {
      return Move{.data = DataId{0}, .offset = {}, .size = pages(2), .after = after};
    };
    plan.offloads = {whole({.runs = 1}), whole({.runs = 3})};
    plan.prefetches = {whole({.runs = 2, .offloads = 1}), whole({.runs = 4, .offloads = 2})};
    plan.runs[1].after.offloads = 1;
    plan.runs[2].after.prefetches = 1;
    plan.runs[3].after.offloads = 2;
    plan.runs[4].after.prefetches = 2;
  }
  // Returns the error when the step is executed with explicit copies.
  [[nodiscard]] std::string fault() const {
    Profile profile = flat_profile(graph, 100ns);
    profile.link.copies_while_read = true;
    return check_trace(graph, plan, simulate(plan, profile), profile.link);
  }
  TaskGraph graph =
      toy_graph("y:2 a:2 b:2", "y = make(); a = fill(); use(y); b = again(); last(y)");
  Plan plan = plain_plan_with_pool(graph, pages(2));
};

TEST_F(TwoSwaps, AreAccepted) {
  EXPECT_EQ(reason_against(graph, plan), "");
  EXPECT_EQ(fault(), "");
}

// After the first prefetch, the second transfer copies y out while "use" reads it.
TEST_F(TwoSwaps, MayBeginTheSecondWhileTheBlockIsRead) {
  plan.offloads[1].after = {.runs = 2, .prefetches = 1};
  plan.offloads[1].free_after = 3;
  EXPECT_EQ(reason_against(graph, plan), "");
  EXPECT_EQ(fault(), "");
}

// The second transfer may start after "make", and copies pages that the first has sent away.
TEST_F(TwoSwaps, AreRefusedWhenTheSecondCopiesWhatTheFirstHasSentAway) {
  plan.offloads[1].after = {.runs = 1};
  plan.offloads[1].free_after = 3;
  EXPECT_NE(reason_against(graph, plan), "");
  EXPECT_NE(fault().find("y is copied out when part of it is not near"), std::string::npos);
}

}  // namespace
}  // namespace spillway::prefetch
