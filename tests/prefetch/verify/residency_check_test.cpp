#include "prefetch/verify/residency_check.h"

#include <gtest/gtest.h>

#include "prefetch/moves/recomputation.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// x has two pages: made by run 0, used by the runs 2 and 4; away in between both times, the second
// time clean.
class CheckResidency : public ::testing::Test {
 protected:
  CheckResidency() {
    const DataId x{0};
    plan.runs = runs_in_order(graph);
    plan.offloads = {{.data = x, .size = pages(2), .after = {.runs = 1}},
                     {.data = x, .size = pages(2), .is_clean = true, .after = {3, 0, 1}}};
    plan.prefetches = {{.data = x, .size = pages(2), .after = {1, 1, 0}},
                       {.data = x, .size = pages(2), .after = {3, 2, 0}}};
    plan.runs[2].after = {2, 0, 1};
    plan.runs[4].after = {4, 0, 2};
  }
  [[nodiscard]] std::string reason() const {
    const auto violation =
        check_residency(graph, BlockSizes{graph, kPage}, plan, find_lives(graph, plan.runs));
    return violation ? violation->reason : "";
  }
  TaskGraph graph = toy_graph("x:2", "x = make(); other(); use(x); another(); use again(x)");
  Plan plan;
};

TEST_F(CheckResidency, AcceptsABlockThatIsNearWheneverItIsUsed) { EXPECT_EQ(reason(), ""); }

TEST_F(CheckResidency, AcceptsPagesThatComeBackInParts) {
  Move half = plan.prefetches[0];
  half.size = pages(1);
  plan.prefetches[0].size = pages(1);
  plan.prefetches[0].offset = pages(1);
  plan.prefetches.insert(plan.prefetches.begin(), half);
  plan.runs[2].after.prefetches = 2;
  plan.runs[4].after.prefetches = 3;
  EXPECT_EQ(reason(), "");
  plan.runs[2].after.prefetches = 1;
  EXPECT_EQ(reason(), "x is not all near when use (run 2) uses it");
}

// x is copied out while run 2 still reads it.
TEST_F(CheckResidency, AcceptsACopyOfABlockThatIsOnlyRead) {
  plan.offloads.erase(plan.offloads.begin());
  plan.prefetches.erase(plan.prefetches.begin());
  plan.offloads[0] = {
      .data = plan.offloads[0].data, .size = pages(2), .after = {.runs = 1}, .free_after = 3};
  plan.prefetches[0].after = {3, 1, 0};
  plan.runs[2].after = {2, 0, 0};
  plan.runs[4].after = {4, 0, 1};
  EXPECT_EQ(reason(), "");
  plan.offloads[0].after.runs = 0;
  EXPECT_EQ(reason(), "x is offloaded before it is written");
}

TEST_F(CheckResidency, RefusesACleanOffloadOfABlockThatWasWrittenSince) {
  graph.tasks[2].writes = graph.tasks[2].reads;
  EXPECT_EQ(reason(), "x is freed without a valid far copy");
}

TEST_F(CheckResidency, RefusesToSendPagesAwayTwice) {
  plan.offloads.insert(plan.offloads.begin(), plan.offloads[0]);
  EXPECT_EQ(reason(), "x is offloaded twice");
}

TEST_F(CheckResidency, RefusesToBringBackWhatIsNear) {
  plan.prefetches.insert(plan.prefetches.begin(), plan.prefetches[0]);
  plan.runs[2].after.prefetches = 2;
  EXPECT_EQ(reason(), "x is prefetched while it is near");
}

TEST_F(CheckResidency, RefusesAMoveAfterTheLastUse) {
  plan.offloads.push_back({.data = DataId{0}, .size = pages(2), .after = {.runs = 5}});
  EXPECT_EQ(reason(), "x is moved when nobody needs it");
}

// Run 0 makes x (two pages) and run 2 uses it; y (three pages) lives only in run 1; x may be away
// meanwhile. 64 bytes of state are always near.
class WorstCasePeak : public ::testing::Test {
 protected:
  WorstCasePeak() {
    const DataId x{0};
    graph.add(DataBlock{.name = "w", .size = 8_B, .kind = DataKind::kState});
    plan.runs = runs_in_order(graph);
    plan.offloads = {{.data = x, .size = pages(2), .after = {.runs = 1}}};
    plan.prefetches = {{.data = x, .size = pages(2), .after = {2, 1, 0}}};
    plan.runs[1].after = {1, 1, 0};
    plan.runs[2].after = {2, 1, 1};
  }
  [[nodiscard]] um::Bytes peak() const {
    return worst_case_peak(graph, BlockSizes{graph, kPage}, plan, find_lives(graph, plan.runs))
        .bytes;
  }
  TaskGraph graph = toy_graph("x:2 y:3", "x = make x(); y = make y(); use x(x)");
  Plan plan;
};

TEST_F(WorstCasePeak, CountsAsAwayWhatMustHaveLeft) { EXPECT_EQ(peak(), pages(3) + 64_B); }

TEST_F(WorstCasePeak, CountsAsNearWhatNobodyWaitedFor) {
  plan.runs[1].after.offloads = 0;  // x may still be leaving
  EXPECT_EQ(peak(), pages(5) + 64_B);
}

TEST_F(WorstCasePeak, CountsAPrefetchThatMayHaveStarted) {
  plan.prefetches[0].after.runs = 1;  // x may be coming back while y is there
  EXPECT_EQ(peak(), pages(5) + 64_B);
}

TEST_F(WorstCasePeak, CountsTheWorkspaceOfTheChosenAlgorithm) {
  graph.tasks[1].algorithms.push_back({.name = "fast", .workspace = pages(4)});
  EXPECT_EQ(peak(), pages(3) + 64_B);
  plan.runs[1].algorithm = 1;
  EXPECT_EQ(peak(), pages(7) + 64_B);
}

using namespace std::chrono_literals;

std::string verdict(const TaskGraph& graph, const std::vector<TaskRun>& runs) {
  const auto violation = check_dataflow(graph, runs);
  return violation ? violation->reason : "";
}

// Returns every task once, and `task` again just before `before`.
std::vector<TaskRun> with_again(const TaskGraph& graph, TaskId task, TaskId before) {
  std::vector<TaskRun> runs = runs_in_order(graph);
  const auto place = runs.begin() + static_cast<std::ptrdiff_t>(before);
  runs.insert(place, {.task = task, .is_recomputation = true});
  return runs;
}

// "make" writes x and y, "double" updates y in place, "sum" reads x and y.
class TwoOutputs : public ::testing::Test {
 protected:
  TwoOutputs() {
    for (const TaskId id : {make, twice}) graph.tasks[std::size_t(id)].is_recomputable = true;
    graph.tasks[2].phase = Phase::kBackward;
  }
  TaskGraph graph = toy_graph("x:1 y:1", "x, y = make(); y = double(y); sum(x, y)");
  const DataId y{1};
  const TaskId make{0}, twice{1}, sum{2};
};

TEST_F(TwoOutputs, MayBeMadeAgainTogetherWithWhatChangesThem) {
  std::vector<TaskRun> runs = with_again(graph, make, sum);
  runs.insert(runs.end() - 1, {.task = twice, .is_recomputation = true});
  EXPECT_EQ(verdict(graph, runs), "");
}

TEST_F(TwoOutputs, AreNotMadeAgainWhenOneOfThemHasChangedSince) {
  EXPECT_EQ(verdict(graph, with_again(graph, make, sum)),
            "sum reads y after a recomputation gave it an older value");
}

TEST_F(TwoOutputs, AreNoCandidatesForDroppingWhenThatBringsBackAnOldValue) {
  // Dropping x requires running "make" again, which undoes "double"; dropping y requires both.
  const auto found =
      find_recomputable(graph, flat_profile(graph, 100ns), kPage, runs_in_order(graph));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].data, y);
}

TEST_F(TwoOutputs, AreNoCandidatesWhenAnotherTaskFinishesOneOfThem) {
  // "root" makes z from the doubled y, and "sum" reads only x and z. x alone could be dropped,
  // since y is dead; but if z is dropped too, recomputing x would restore the old y for z. x is
  // excluded, so that candidates can be dropped in any combination. y is a candidate, since z's
  // recomputation needs it.
  graph.tasks.pop_back();
  const DataId z = graph.add(DataBlock{.name = "z", .size = pages(1)});
  add_tasks(graph, "z = root(y); sum(x, z)");
  graph.tasks[2].is_recomputable = true;
  graph.tasks[3].phase = Phase::kBackward;
  const auto found =
      find_recomputable(graph, flat_profile(graph, 100ns), kPage, runs_in_order(graph));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].data, z);
  EXPECT_EQ(found[1].data, y);
}

TEST(CheckDataflow, RefusesARecomputationOverAnInPlaceValueThatIsStillNeeded) {
  TaskGraph graph = toy_graph("a:1", "a = make(); a = double(a); use(a)");
  graph.tasks[0].is_recomputable = true;
  EXPECT_EQ(verdict(graph, runs_in_order(graph)), "");
  EXPECT_EQ(verdict(graph, with_again(graph, TaskId{0}, TaskId{2})),
            "use reads a after a recomputation gave it an older value");
}

TEST(CheckDataflow, RefusesStateThatEndsTheStepWithAnOlderValue) {
  // No task reads w after "add", so only the end of the step shows that "reset" ran again.
  TaskGraph graph = toy_graph("w:1", "w = reset(); w = add(w); last()");
  graph.data[0].kind = DataKind::kState;
  graph.tasks[0].is_recomputable = true;
  EXPECT_EQ(verdict(graph, runs_in_order(graph)), "");
  EXPECT_EQ(verdict(graph, with_again(graph, TaskId{0}, TaskId{2})),
            "w ends the step with an older value");
}

TEST(CheckDataflow, RefusesARecomputationThatReadsStateUpdatedSince) {
  TaskGraph graph = toy_graph("w:1 y:1", "y = forward(w); w = update(w); use(y)");
  graph.data[0].kind = DataKind::kState;
  graph.tasks[0].is_recomputable = true;
  EXPECT_EQ(verdict(graph, with_again(graph, TaskId{0}, TaskId{2})),
            "the recomputation of forward reads other values than its first run");
}

TEST(CheckDataflow, RefusesToReadWhatNothingWrote) {
  const TaskGraph graph = toy_graph("a:1", "use(a)");
  EXPECT_EQ(verdict(graph, runs_in_order(graph)), "use reads a before anything wrote it");
}

// Among blocks in the same memory, only the one written last is valid.
class SharedMemory : public ::testing::Test {
 protected:
  [[nodiscard]] static TaskGraph graph_of(const char* tasks) {
    TaskGraph graph = toy_graph("w:1 g:1 u:1 v:1", tasks);
    for (DataBlock& block : graph.data) block.kind = DataKind::kState;
    for (const std::size_t i : {2, 3}) graph.data[i].lies_in = DataId{1};
    return graph;
  }
  [[nodiscard]] static std::string verdict_of(const char* tasks) {
    const TaskGraph graph = graph_of(tasks);
    return verdict(graph, runs_in_order(graph));
  }
};

TEST_F(SharedMemory, MayBeWrittenByTheLastReaderOfWhatWasThere) {
  EXPECT_EQ(verdict_of("g = backward(w); u = update(w, g); w = take(u)"), "");
}

TEST_F(SharedMemory, IsNotReadAsWhatWasThereBefore) {
  EXPECT_EQ(verdict_of("g = backward(w); u = update(w, g); w = take(u); norm(g)"),
            "norm reads g, over which what lies in its memory was written");
  EXPECT_EQ(verdict_of("g = backward(w); u = update(w, g); v = update2(w); w = take(u)"),
            "take reads u, over which what lies in its memory was written");
  EXPECT_EQ(verdict_of("u = update(w, g); g = backward(w); w = take(u)"),
            "take reads u, over which what lies in its memory was written");
}

}  // namespace
}  // namespace spillway::prefetch
