#include "prefetch/moves/recomputation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

std::vector<std::string> task_names(const TaskGraph& graph, const std::vector<TaskRun>& runs) {
  std::vector<std::string> result;
  for (const TaskRun& run : runs) {
    result.push_back(graph[run.task].name + (run.is_recomputation ? " again" : ""));
  }
  return result;
}

// load, f1 to f3, loss, b3 to b1. y0 is not a candidate, since load is not recomputable.
class RecomputationTest : public ::testing::Test {
 protected:
  TaskGraph graph = chain(3, pages(1));
  std::vector<TaskRun> runs = runs_in_order(graph);
};

TEST_F(RecomputationTest, FindsWhatRecomputableTasksMakeCheapestFirst) {
  Profile profile = flat_profile(graph, 100ns);
  profile.durations[2][0] = 50ns;  // f2
  const auto found = find_recomputable(graph, profile, kPage, runs);
  std::vector<std::string> blocks;
  for (const Recomputable& block : found) blocks.push_back(graph[block.data].name);
  EXPECT_EQ(blocks, (std::vector<std::string>{"y2", "y1", "y3"}));
  EXPECT_EQ(found[0].cost, 50ns);
}

TEST_F(RecomputationTest, RunsATaskAgainJustBeforeItsOutputIsRead) {
  EXPECT_EQ(
      task_names(graph,
                 RecomputationInserter{graph}.insert(runs, std::vector<Dropped>{{DataId{1}}})),
      (std::vector<std::string>{"load", "f1", "f2", "f3", "loss", "b3", "f1 again", "b2", "b1"}));
}

TEST_F(RecomputationTest, RecomputesFirstWhatARecomputationReads) {
  const auto again =
      RecomputationInserter{graph}.insert(runs, std::vector<Dropped>{{DataId{1}}, {DataId{2}}});
  EXPECT_EQ(task_names(graph, again),
            (std::vector<std::string>{"load", "f1", "f2", "f3", "loss", "f1 again", "f2 again",
                                      "b3", "b2", "b1"}));
}

// Each block of the chain is made from the previous one.
TEST(RecomputationInserter, MakesAChainOfAnyLengthAgain) {
  constexpr std::size_t kLayers = 150'000;
  const TaskGraph graph = chain(kLayers, pages(1));
  std::vector<Dropped> dropped;
  for (std::size_t i = 1; i <= kLayers; ++i) dropped.push_back({DataId(i)});
  const auto again = RecomputationInserter{graph}.insert(runs_in_order(graph), dropped);
  EXPECT_EQ(again.size(), 3 * kLayers + 2) << "the loss wants y(n), all others are made for it";
}

TEST_F(RecomputationTest, InsertsNoMoreRunsThanAllowed) {
  const RecomputationInserter inserter{graph};
  const std::vector<Dropped> dropped{{DataId{1}}};
  EXPECT_EQ(inserter.insert_within(9, runs, dropped), inserter.insert(runs, dropped));
  EXPECT_FALSE(inserter.insert_within(8, runs, dropped));
}

TEST_F(RecomputationTest, RunsATaskAgainForEveryUseWhereAskedTo) {
  // b3 needs y2 and y3, b2 needs y1 and y2.
  const std::vector<Dropped> each{{.data = DataId{2}, .reuse = Reuse::kPerUse}};
  EXPECT_EQ(task_names(graph, RecomputationInserter{graph}.insert(runs, each)),
            (std::vector<std::string>{"load", "f1", "f2", "f3", "loss", "f2 again", "b3",
                                      "f2 again", "b2", "b1"}));
}

TEST_F(RecomputationTest, KeepsWhatABackwardTaskReadsItselfWhereAskedTo) {
  // The loss needs y3, made from y2, made from y1: only y3 stays. b3 needs y2 and y3, b2 needs y1
  // and y2.
  const std::vector<Dropped> all{{.data = DataId{1}, .reuse = Reuse::kOnceRead},
                                 {.data = DataId{2}, .reuse = Reuse::kOnceRead},
                                 {.data = DataId{3}, .reuse = Reuse::kOnceRead}};
  EXPECT_EQ(
      task_names(graph, RecomputationInserter{graph}.insert(runs, all)),
      (std::vector<std::string>{"load", "f1", "f2", "f3", "f1 again", "f2 again", "f3 again",
                                "loss", "f1 again", "f2 again", "b3", "f1 again", "b2", "b1"}));
}

// b3 does not read y2, but f3 does to recompute y3.
TEST_F(RecomputationTest, FindsWhatOnlyRecomputationsRead) {
  for (Task& task : graph.tasks) {
    if (task.phase == Phase::kBackward) std::erase(task.reads, DataId{2});
  }
  const auto found = find_recomputable(graph, flat_profile(graph, 100ns), kPage, runs);
  EXPECT_TRUE(std::ranges::any_of(found, [](const auto& each) { return each.data == DataId{2}; }));
}

// In any combination, recomputed once or for each use, every run reads the right values.
RC_GTEST_PROP(Recomputables, CanBeDroppedInAnyCombination, ()) {
  const TaskGraph graph = random_graph();
  const std::vector<TaskRun> runs = runs_in_order(graph);
  std::vector<Dropped> dropped;
  for (const auto& block : find_recomputable(graph, flat_profile(graph, 100ns), kPage, runs)) {
    if (*rc::gen::arbitrary<bool>()) continue;
    dropped.push_back(
        {.data = block.data,
         .reuse = *rc::gen::element(Reuse::kUntilLastUse, Reuse::kPerUse, Reuse::kOnceRead)});
  }
  const auto wrong = check_dataflow(graph, RecomputationInserter{graph}.insert(runs, dropped));
  if (wrong) RC_FAIL(wrong->reason);
}

TEST_F(RecomputationTest, IsPartOfAPlanThatVerifiesAndCannotBeTamperedWith) {
  // A page takes 10 us each way, a task 100 ns: recomputing beats moving.
  Profile profile = flat_profile(graph, 100ns);
  profile.link.offload = profile.link.prefetch = um::Bandwidth{4096e5 / 1.0};
  Problem given = problem(graph, profile, pages(4));
  given.may_recompute = true;
  Plan plan = planned("joint", given);
  const auto again = std::ranges::find(plan.runs, true, &TaskRun::is_recomputation);
  ASSERT_NE(again, plan.runs.end());
  ASSERT_EQ(reason_against(graph, plan), "");
  given.may_recompute = false;
  EXPECT_LT(simulate(plan, profile).makespan(),
            simulate(planned("joint", given), profile).makespan());

  again->is_recomputation = false;  // now the task runs twice
  EXPECT_NE(reason_against(graph, plan), "");
  again->is_recomputation = true;
  graph.tasks[static_cast<std::size_t>(again->task)].is_recomputable = false;
  plan.graph = fingerprint(graph);
  EXPECT_NE(reason_against(graph, plan).find("cannot be recomputed"), std::string::npos);
}

TEST_F(RecomputationTest, IsRefusedWithAnotherAlgorithm) {
  graph.tasks[1].algorithms.push_back({.name = "fast"});
  Plan plan = plain_plan(graph, pages(9));
  plan.runs = RecomputationInserter{graph}.insert(runs, std::vector<Dropped>{{DataId{1}}});
  ASSERT_TRUE(plan.runs[6].is_recomputation);
  plan.runs[6].algorithm = 1;  // would round differently
  EXPECT_EQ(reason_against(graph, plan), "the recomputation of f1 uses another algorithm");
}

}  // namespace
}  // namespace spillway::prefetch
