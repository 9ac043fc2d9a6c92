#include "prefetch/moves/cover.h"

#include <gtest/gtest.h>

#include <string>

#include "prefetch/moves/algorithm_choice.h"
#include "prefetch/moves/saved_blocks.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// a and b have two pages, c has three. Demand in pages, run by run:
//   make a: 2, make b: 4, make c: 7, use b: 4 (c is dead), use a: 2.
// Idle when c is made: a (least recently used) and b.
class CoverTest : public ::testing::Test {
 protected:
  // "name offset+size for run", in pages; "none" when some run does not fit.
  [[nodiscard]] std::vector<std::string> away(um::Bytes pool, const CoverOptions& options) const {
    const BlockSizes block_sizes{graph, kPage};
    const std::vector<TaskRun> runs = runs_in_order(graph);
    const std::vector<Life> lives = find_lives(graph, runs);
    const auto far_intervals =
        cover(block_sizes, demand(graph, block_sizes, runs, lives), lives, pool, options);
    if (!far_intervals) return {"none"};
    std::vector<std::string> result;
    for (const FarInterval& far_interval : *far_intervals) {
      result.push_back(graph[far_interval.data].name + " " +
                       std::to_string(far_interval.offset / kPage) + "+" +
                       std::to_string(far_interval.size / kPage) + " for " +
                       std::to_string(far_interval.needed));
    }
    return result;
  }
  const TaskGraph graph =
      toy_graph("a:2 b:2 c:3", "a = make a(); b = make b(); c = make c(); use b(b); use a(a)");
};

using Away = std::vector<std::string>;

TEST_F(CoverTest, TakesNothingWhenEverythingFits) {
  EXPECT_EQ(away(pages(7), {.chunk = pages(4)}), Away{});
}

TEST_F(CoverTest, TakesWhatIsMissingFromTheBlockUsedLongestAgo) {
  EXPECT_EQ(away(pages(6), {.chunk = pages(4)}), Away{"a 0+1 for 2"});
  EXPECT_EQ(away(pages(4), {.chunk = pages(4)}), (Away{"a 0+2 for 2", "b 0+1 for 2"}));
}

TEST_F(CoverTest, TakesWholeBlocksWhenToldTo) {
  EXPECT_EQ(away(pages(6), {.chunk = pages(4), .whole_blocks = true}), Away{"a 0+2 for 2"});
  EXPECT_EQ(away(pages(4), {.chunk = pages(1), .whole_blocks = true}),
            (Away{"a 0+2 for 2", "b 0+2 for 2"}));
}

TEST_F(CoverTest, TakesNoMoreThanAChunkAtOnce) {
  EXPECT_EQ(away(pages(4), {.chunk = pages(1)}),
            (Away{"a 0+1 for 2", "a 1+1 for 2", "b 0+1 for 2"}));
}

// Two pages are to stay free: of 7 when c is made; of 4 also when b is made, while a is idle.
TEST_F(CoverTest, KeepsSpareRoomAsFarAsBlocksAreIdle) {
  EXPECT_EQ(away(pages(7), {.chunk = pages(4), .spare = pages(2)}), Away{"a 0+2 for 2"});
  EXPECT_EQ(away(pages(4), {.chunk = pages(4), .spare = pages(2)}),
            (Away{"a 0+2 for 1", "b 0+1 for 2", "b 1+1 for 2"}));
}

TEST_F(CoverTest, GivesNothingWhenATaskDoesNotFit) {
  // Three pages: one page of a must already leave for b.
  EXPECT_EQ(away(pages(3), {.chunk = pages(4)}),
            (Away{"a 0+1 for 1", "a 1+1 for 2", "b 0+2 for 2"}));
  EXPECT_EQ(away(pages(2), {.chunk = pages(4)}), Away{"none"});
}

using namespace std::chrono_literals;

// A chain of four layers of two pages; each forward task has a fast algorithm with a workspace of
// four pages. The largest working set is eight pages (backward); a forward task with workspace also
// needs eight: y, y and four. When f4 runs, y0 to y4 and its workspace are near: 14 pages.
class ChooseAlgorithms : public ::testing::Test {
 protected:
  ChooseAlgorithms() {
    for (std::size_t t = 1; t <= 4; ++t) {
      graph.tasks[t].algorithms.push_back({.name = "fast", .workspace = pages(4)});
    }
    profile = flat_profile(graph, 100ns);
    for (std::size_t t = 1; t <= 4; ++t) profile.durations[t] = {100ns, 50ns};
  }
  // Returns the number of calls by choose_algorithms(), at most `evaluations`. A plan's time is its
  // number of fast algorithms, so these never pay.
  [[nodiscard]] int calls(um::Bytes pool, int evaluations) const {
    int count = 0;
    const auto evaluate = [&](std::vector<TaskRun> runs) -> std::optional<EvaluatedPlan> {
      ++count;
      EvaluatedPlan plan;
      for (const TaskRun& run : runs) plan.makespan += um::Nanoseconds{run.algorithm};
      plan.plan.runs = std::move(runs);
      return plan;
    };
    static_cast<void>(choose_algorithms(problem(graph, profile, pool), evaluate, evaluations));
    return count;
  }
  TaskGraph graph = chain(4, pages(2));
  Profile profile;
};

TEST_F(ChooseAlgorithms, TakesTheFastestThatFitsAlone) {
  EXPECT_EQ(fastest_that_fit(problem(graph, profile, pages(8)))[4].algorithm, 1U);
  EXPECT_EQ(fastest_that_fit(problem(graph, profile, pages(7)))[4].algorithm, 0U);
}

TEST_F(ChooseAlgorithms, EvaluatesOnceWhereNoWorkspaceCostsAMove) {
  EXPECT_EQ(calls(pages(14), 64), 1);
}

// At eight pages f2, f3 and f4 need moves for their workspaces (f1 with y0, y1 and 4 pages does
// not). Calls: all fast, all three frugal, and each of the three by itself.
TEST_F(ChooseAlgorithms, EvaluatesNeverMoreThanItMay) {
  EXPECT_EQ(calls(pages(8), 64), 5);
  for (int evaluations = 1; evaluations <= 5; ++evaluations) {
    EXPECT_EQ(calls(pages(8), evaluations), evaluations);
  }
}

TEST_F(ChooseAlgorithms, EvaluatesTheSameRunsOnlyOnceWhenNothingFits) {
  int count = 0;
  const auto nothing = [&](const std::vector<TaskRun>&) -> std::optional<EvaluatedPlan> {
    ++count;
    return std::nullopt;
  };
  EXPECT_FALSE(choose_algorithms(problem(graph, profile, pages(7)), nothing, 64));
  EXPECT_EQ(count, 1);  // no fast algorithm fits, so none can be reverted
}

std::vector<FarInterval> saved_in(const TaskGraph& graph) {
  return find_saved_blocks(graph, BlockSizes{graph, kPage}, runs_in_order(graph));
}

// load 0, f1 1, f2 2, loss 3, b2 4, b1 5. f1 reads y0, then b1 does; f2 reads y1, then b2 does; f2
// writes y2 and the loss reads it.
TEST(SavedBlocks, AreWhatBothPassesUse) {
  const TaskGraph graph = chain(2, pages(2));
  const auto saved = saved_in(graph);
  ASSERT_EQ(saved.size(), 3U);
  EXPECT_EQ(graph[saved[0].data].name, "y0");
  EXPECT_EQ(saved[0].written, 0U);
  EXPECT_EQ(saved[0].last, 1U);
  EXPECT_EQ(saved[0].needed, 2U);
  EXPECT_EQ(saved[0].next, 5U);
  EXPECT_EQ(saved[0].size, pages(2));
  EXPECT_TRUE(saved[0].follows_a_read());
  EXPECT_EQ(saved[1].last, 2U);
  EXPECT_EQ(saved[1].next, 4U);
  EXPECT_EQ(graph[saved[2].data].name, "y2");
  EXPECT_FALSE(saved[2].follows_a_read());
}

// f2 also reads y0, as the end of a shortcut: y0 leaves after f2.
TEST(SavedBlocks, LeaveAfterTheLastForwardReaderOfAFork) {
  TaskGraph graph = chain(2, pages(2));
  graph.tasks[2].reads.push_back(DataId{0});
  const auto saved = saved_in(graph);
  EXPECT_EQ(graph[saved[0].data].name, "y0");
  EXPECT_EQ(saved[0].last, 2U);
}

// f1 and f2 update y0 in place: f2's content is saved.
TEST(SavedBlocks, AreLastWrittenByTheLastForwardWriter) {
  TaskGraph graph = chain(2, pages(2));
  graph.tasks[1].writes.push_back(DataId{0});
  graph.tasks[2].reads.push_back(DataId{0});
  graph.tasks[2].writes.push_back(DataId{0});
  const auto saved = saved_in(graph);
  EXPECT_EQ(graph[saved[0].data].name, "y0");
  EXPECT_EQ(saved[0].written, 2U);
  EXPECT_FALSE(saved[0].follows_a_read());
}

TEST(BackwardLayers, FollowTheInputsThatTheyRead) {
  TaskGraph graph = chain(2, pages(2));
  graph.add(Task{.name = "update", .phase = Phase::kUpdate});  // reads nothing: b1's layer
  const auto runs = runs_in_order(graph);
  const auto layers = find_backward_layers(graph, runs, saved_in(graph));
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0].layer, 3U);  // the loss
  EXPECT_EQ(layers[1].layer, 2U);  // b2 reads y1, the input of f2
  EXPECT_EQ(layers[1].begin, 4U);
  EXPECT_EQ(layers[1].end, 5U);
  EXPECT_EQ(layers[2].layer, 1U);
  EXPECT_EQ(layers[2].end, 7U);
}

// A forward task lies between b2 and another backward task of the same layer.
TEST(BackwardLayers, EndWhereAForwardTaskComesBetween) {
  TaskGraph graph = chain(2, pages(2));
  const Task more{.name = "b2 again", .phase = Phase::kBackward, .reads = {DataId{1}}};
  graph.tasks.insert(graph.tasks.begin() + 5, {Task{.name = "next batch"}, more});
  const auto layers = find_backward_layers(graph, runs_in_order(graph), saved_in(graph));
  ASSERT_EQ(layers.size(), 4U);  // loss, b2, b2 again, b1
  EXPECT_EQ(layers[1].layer, layers[2].layer);
  EXPECT_EQ(layers[1].end, 5U);
  EXPECT_EQ(layers[2].begin, 6U);
}

}  // namespace
}  // namespace spillway::prefetch
