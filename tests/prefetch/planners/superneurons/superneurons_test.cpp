#include "prefetch/planners/superneurons.h"

#include <gtest/gtest.h>

#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/planners/superneurons/superneurons_networks.h"
#include "tests/prefetch/toy.h"
#include "tests/refusal.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

// Three convolutions, each with its ReLU, and a softmax. Images of 32 x 32 floats: a tensor takes a
// page per channel; `middle` sets the channels of conv2 and relu2.
TaskGraph three_convolutions(std::uint64_t middle = 1) {
  SuperNeuronsStep step{1};
  auto x = step.relu(step.first_convolution(32, 1, {.kernel = 1}));
  x = step.relu(step.convolution(x, middle, {.kernel = 1}));
  x = step.relu(step.convolution(x, 1, {.kernel = 1}));
  step.softmax(x);
  return step.finish();
}

// Pages near during each run without moves. c: a convolution's output, r: a ReLU's, s: the
// softmax's, which becomes the gradient d3; in place, s -> r3 -> c3. conv1's dx takes 3 pages.
//
//   run   0  1  2  3  4  5  6  | 7  8  9  10 11 12 13
//   task  C1 R1 C2 R2 C3 R3 S  | S  R3 C3 R2 C2 R1 C1   (backward after the bar)
//   c1    x  x  .  .  .  .  .    .  .  .  .  .  x        x: used, .: alive
//   r1       x  x  .  .  .  .    .  .  .  .  x  x
//   c2          x  x  .  .  .    .  .  .  x
//   r2             x  x  .  .    .  .  x  x
//   c3                x  x  .    .  x
//   r3                   x  x    x  x
//   s                       x    x  x  x
//   dx                                 x  x  xx xx xxxx
//   near  1  2  3  4  5  6  7    7  7  6  5  4  3  4
class SuperNeuronsTest : public ::testing::Test {
 protected:
  Plan plan_with(const SuperNeuronsOptions& options, um::Bytes pool) {
    profile = flat_profile(graph, 100ns);
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      if (graph.tasks[t].algorithms.size() > 1) profile.durations[t][1] = 50ns;
    }
    Problem given = problem(graph, profile, pool);
    given.may_recompute = may_recompute;
    Plan plan = std::get<Plan>(plan_superneurons(given, options));
    EXPECT_EQ(reason_against(graph, plan), "");
    EXPECT_TRUE(moves_whole_blocks(plan, graph));
    return plan;
  }

  [[nodiscard]] std::vector<std::string> recomputed(const Plan& plan) const {
    std::vector<std::string> result;
    for (std::size_t p = 0; p < plan.runs.size(); ++p) {
      if (!plan.runs[p].is_recomputation) continue;
      result.push_back(graph[plan.runs[p].task].name + " before " +
                       graph[plan.runs[p + 1].task].name);
    }
    return result;
  }

  TaskGraph graph = three_convolutions();
  Profile profile;
  bool may_recompute = true;
};

using Names = std::vector<std::string>;

// If everything fits, all techniques except the eager pool leave the step unchanged.
TEST_F(SuperNeuronsTest, MovesNothingWithACacheWhereEverythingFits) {
  const Plan plan = plan_with({.recompute = false}, pages(7));
  EXPECT_TRUE(plan.offloads.empty());
  EXPECT_EQ(simulate(plan, profile).makespan(), 1400ns);
}

// Without the cache c1 leaves between R1 and C2, c2 between R2 and C3; c3 has no convolution after
// it. c2 returns with C3 backward, c1 with C2 backward: the last convolution before their use.
TEST_F(SuperNeuronsTest, OffloadsEveryConvolutionWithoutACache) {
  const Plan plan = plan_with({.tensor_cache = false, .recompute = false}, pages(7));
  ASSERT_EQ(names(graph, plan.offloads), "conv1.y conv2.y");
  EXPECT_EQ(plan.offloads[0].after.runs, 2U);
  EXPECT_EQ(plan.runs[2].after.offloads, 1U);
  EXPECT_EQ(plan.offloads[1].after.runs, 4U);
  EXPECT_EQ(plan.runs[4].after.offloads, 2U);
  ASSERT_EQ(names(graph, plan.prefetches), "conv2.y conv1.y");
  EXPECT_EQ(plan.prefetches[0].after.runs, 9U);
  EXPECT_EQ(plan.prefetches[1].after.runs, 11U);
}

// A page takes 1 us each way, a task 100 ns.
//   compute  C1 R1 ----------- C2 R2 ----------- C3 .. R3' C3' --- R2' C2' --- R1' C1'
//   link           c1 out 1 us       c2 out 1 us           c2 in 1 us  c1 in 1 us
//   time     0    200         1200  1400        2400   2900       3900 4000   5000   5200
// Each prefetch overlaps the convolution with which it starts, and one more task.
TEST_F(SuperNeuronsTest, WaitsForALinkThatConvolutionsDoNotHide) {
  const Plan plan = plan_with({.tensor_cache = false, .recompute = false}, pages(7));
  profile.link = toy_link(1us);
  EXPECT_EQ(simulate(plan, profile).makespan(), 5200ns);
}

// One page is missing from S on: the least recently used tensor, c1, leaves for S.
TEST_F(SuperNeuronsTest, OffloadsTheLeastRecentlyUsedTensorWhenMemoryIsShort) {
  const Plan plan = plan_with({.recompute = false}, pages(6));
  ASSERT_EQ(names(graph, plan.offloads), "conv1.y");
  EXPECT_EQ(plan.runs[5].after.offloads, 0U);
  EXPECT_EQ(plan.runs[6].after.offloads, 1U);
  EXPECT_EQ(plan.prefetches[0].after.runs, 11U);
}

// conv2 and relu2 of two pages, and a pool of seven. During C3 backward r1 + r2 + d3 + dx = 1 + 2 +
// 1 + 2 = 6 are near, so c2 does not fit. It returns for R2 backward: c2 + r2 + dx + r1 = 7.
TEST_F(SuperNeuronsTest, FetchesLaterWhereTheConvolutionLeavesNoRoom) {
  graph = three_convolutions(2);
  const Plan plan = plan_with({.recompute = false}, pages(7));
  EXPECT_EQ(names(graph, plan.prefetches), "conv2.y conv1.y");
  EXPECT_EQ(plan.prefetches[0].after.runs, 10U);
}

// With all movable tensors far: during R3 backward r1 + r2 + c3 + r3 + d3 = 5 pages are near.
TEST_F(SuperNeuronsTest, SaysWhatItsOwnRulesNeed) {
  profile = flat_profile(graph, 100ns);
  const auto planned = [&](um::Bytes pool) {
    return plan_superneurons(problem(graph, profile, pool), {.recompute = false});
  };
  const auto result = planned(pages(4));
  ASSERT_TRUE(std::holds_alternative<Infeasible>(result));
  EXPECT_EQ(std::get<Infeasible>(result).smallest_budget, pages(5));
  EXPECT_EQ(graph[std::get<Infeasible>(result).task].name, "relu3.backward");
  EXPECT_TRUE(std::holds_alternative<Plan>(planned(pages(5))));
  EXPECT_LT(near_need(graph, BlockSizes{graph, kPage}).smallest, pages(5));
}

TEST_F(SuperNeuronsTest, NeedsTheWholeStepWithoutOffloading) {
  profile = flat_profile(graph, 100ns);
  const auto result =
      plan_superneurons(problem(graph, profile, pages(6)), {.offload = false, .recompute = false});
  EXPECT_EQ(std::get<Infeasible>(result).smallest_budget, pages(7));
  EXPECT_TRUE(plan_with({.offload = false, .recompute = false}, pages(7)).offloads.empty());
}

// r1 to r3 are dropped and recomputed for the first backward task that reads them. The peak is then
// S: c1 c2 c3 r3 s = 5, and nothing moves.
TEST_F(SuperNeuronsTest, RecomputesWhatIsCheapUnlessItMayNot) {
  const Plan plan = plan_with({}, pages(5));
  EXPECT_EQ(recomputed(plan),
            (Names{"relu3 before softmax1.backward", "relu2 before conv3.backward",
                   "relu1 before conv2.backward"}));
  EXPECT_TRUE(plan.offloads.empty());
  may_recompute = false;
  const Plan moving = plan_with({}, pages(5));
  EXPECT_TRUE(recomputed(moving).empty());
  EXPECT_EQ(names(graph, moving.offloads), "conv1.y conv2.y");
}

// C2 has a fast algorithm with a workspace of three pages: six with c1 r1 c2. c1 does not move for
// it, but with the eager pool, which moves c1 in any case, five suffice.
TEST_F(SuperNeuronsTest, TakesFastConvolutionsInLeftOverMemoryOnly) {
  graph.tasks[2].algorithms = {{.name = "slow"}, {.name = "fast", .workspace = pages(3)}};
  EXPECT_EQ(plan_with({.recompute = false}, pages(6)).runs[2].algorithm, 1U);
  EXPECT_EQ(plan_with({.recompute = false}, pages(5)).runs[2].algorithm, 0U);
  EXPECT_EQ(plan_with({.tensor_cache = false, .recompute = false}, pages(5)).runs[2].algorithm, 1U);
  EXPECT_EQ(plan_with({.recompute = false, .workspace = false}, pages(6)).runs[2].algorithm, 0U);
}

TEST(SuperNeuronsSwitches, AreFoundByName) {
  EXPECT_EQ(find_planner("superneurons").name(), "superneurons");
  EXPECT_EQ(find_planner("superneurons:no-recompute,no-cache").name(),
            "superneurons:no-cache,no-recompute");
  const SuperNeuronsOptions options = parse_superneurons_switches("no-workspace,no-offload");
  EXPECT_FALSE(options.offload);
  EXPECT_FALSE(options.workspace);
  EXPECT_TRUE(options.tensor_cache);
  EXPECT_TRUE(options.recompute);
}

std::string complaint_about(std::string_view name) {
  return test::refusal([&] { return find_planner(name).name(); });
}

TEST(SuperNeuronsSwitches, AreListedWhereOneIsUnknown) {
  const std::string sentence =
      "planner superneurons has no switch 'cache'; it has no-offload, no-cache, no-recompute, "
      "no-workspace";
  EXPECT_EQ(complaint_about("superneurons:no-offload,cache"), sentence);
  EXPECT_NE(complaint_about("superneurons:").find("no switch ''"), std::string::npos);
  EXPECT_EQ(complaint_about("capacity:no-cache"),
            "planner capacity has no switches: write its name without a colon");
  EXPECT_NE(complaint_about("neurons:no-cache").find("no planner called 'neurons'"),
            std::string::npos);
}

}  // namespace
}  // namespace spillway::prefetch
