#include "prefetch/moves/algorithm_choice.h"

#include <gtest/gtest.h>

#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// A chain of four layers of two pages; each forward task has a fast algorithm with a workspace of
// four pages. The largest working set is eight pages (backward), a forward task with its workspace
// also needs eight: y, y and four. When f4 runs, y0 to y4 and its workspace are near: 14 pages.
class ChooseAlgorithms : public ::testing::Test {
 protected:
  ChooseAlgorithms() {
    for (std::size_t t = 1; t <= 4; ++t) {
      graph.tasks[t].algorithms.push_back({.name = "fast", .workspace = pages(4)});
    }
    profile = flat_profile(graph, 100ns);
    for (std::size_t t = 1; t <= 4; ++t) profile.durations[t] = {100ns, 50ns};
  }
  // Calls that choose_algorithms() makes with at most `evaluations`, when a plan takes as long as
  // the number of its fast algorithms says: they never pay.
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

// At eight pages f2, f3 and f4 need moves for their workspaces (f1: y0, y1 and 4 pages do not): all
// fast, all three frugal, and each of the three by itself.
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
  EXPECT_EQ(count, 1);  // no fast algorithm fits, so none can be taken back
}

}  // namespace
}  // namespace spillway::prefetch
