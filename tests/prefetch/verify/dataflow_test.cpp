#include "prefetch/verify/dataflow.h"

#include <gtest/gtest.h>

#include "prefetch/moves/recomputation.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

std::string verdict(const TaskGraph& graph, const std::vector<TaskRun>& runs) {
  const auto violation = check_dataflow(graph, runs);
  return violation ? violation->reason : "";
}

// Every task once, and `task` again just before `before`.
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
    x = graph.add(DataBlock{.name = "x", .size = pages(1)});
    y = graph.add(DataBlock{.name = "y", .size = pages(1)});
    make = graph.add(Task{.name = "make", .writes = {x, y}, .is_recomputable = true});
    twice = graph.add(Task{.name = "double", .reads = {y}, .writes = {y}, .is_recomputable = true});
    sum = graph.add(Task{.name = "sum", .phase = Phase::kBackward, .reads = {x, y}});
  }
  TaskGraph graph;
  DataId x{}, y{};
  TaskId make{}, twice{}, sum{};
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
  // To drop x means to run "make" again, which undoes "double"; to drop y means to run both again.
  const auto found =
      find_recomputable(graph, flat_profile(graph, 100ns), kPage, runs_in_order(graph));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].data, y);
}

TEST_F(TwoOutputs, AreNoCandidatesWhenAnotherTaskFinishesOneOfThem) {
  // "root" makes z from the doubled y, and "sum" reads x and z alone. x alone could be dropped,
  // since nobody reads y any more; but with z dropped too, z would be made from the y that making x
  // brings back. x stays, so that candidates can be dropped in any combination. y is one, for the
  // sake of making z again.
  graph.tasks.pop_back();
  const DataId z = graph.add(DataBlock{.name = "z", .size = pages(1)});
  graph.add(Task{.name = "root", .reads = {y}, .writes = {z}, .is_recomputable = true});
  graph.add(Task{.name = "sum", .phase = Phase::kBackward, .reads = {x, z}});
  const auto found =
      find_recomputable(graph, flat_profile(graph, 100ns), kPage, runs_in_order(graph));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].data, z);
  EXPECT_EQ(found[1].data, y);
}

TEST(CheckDataflow, RefusesARecomputationOverAnInPlaceValueThatIsStillNeeded) {
  TaskGraph graph;
  const DataId a = graph.add(DataBlock{.name = "a", .size = pages(1)});
  const TaskId make = graph.add(Task{.name = "make", .writes = {a}, .is_recomputable = true});
  graph.add(Task{.name = "double", .reads = {a}, .writes = {a}});
  const TaskId use = graph.add(Task{.name = "use", .reads = {a}});
  EXPECT_EQ(verdict(graph, runs_in_order(graph)), "");
  EXPECT_EQ(verdict(graph, with_again(graph, make, use)),
            "use reads a after a recomputation gave it an older value");
}

TEST(CheckDataflow, RefusesStateThatEndsTheStepWithAnOlderValue) {
  // Nobody reads w after "add", so only the end of the step shows that "reset" ran again.
  TaskGraph graph;
  const DataId w = graph.add(DataBlock{.name = "w", .size = 8_B, .kind = DataKind::kState});
  const TaskId reset = graph.add(Task{.name = "reset", .writes = {w}, .is_recomputable = true});
  graph.add(Task{.name = "add", .reads = {w}, .writes = {w}});
  const TaskId last = graph.add(Task{.name = "last"});
  EXPECT_EQ(verdict(graph, runs_in_order(graph)), "");
  EXPECT_EQ(verdict(graph, with_again(graph, reset, last)), "w ends the step with an older value");
}

TEST(CheckDataflow, RefusesARecomputationThatReadsStateUpdatedSince) {
  TaskGraph graph;
  const DataId w = graph.add(DataBlock{.name = "w", .size = 8_B, .kind = DataKind::kState});
  const DataId y = graph.add(DataBlock{.name = "y", .size = pages(1)});
  const TaskId forward =
      graph.add(Task{.name = "forward", .reads = {w}, .writes = {y}, .is_recomputable = true});
  graph.add(Task{.name = "update", .reads = {w}, .writes = {w}});
  const TaskId use = graph.add(Task{.name = "use", .reads = {y}});
  EXPECT_EQ(verdict(graph, with_again(graph, forward, use)),
            "the recomputation of forward reads other values than its first run");
}

TEST(CheckDataflow, RefusesToReadWhatNothingWrote) {
  TaskGraph graph;
  const DataId a = graph.add(DataBlock{.name = "a", .size = pages(1)});
  graph.add(Task{.name = "use", .reads = {a}});
  EXPECT_EQ(verdict(graph, runs_in_order(graph)), "use reads a before anything wrote it");
}

}  // namespace
}  // namespace spillway::prefetch
