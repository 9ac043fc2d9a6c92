// Common properties of several planners on the same chain.
#include "prefetch/planners/catalogue.h"

#include "tests/prefetch/toy_chain.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace std::chrono_literals;

struct SmallestBudget {
  const char* planner;
  std::uint64_t pages;
  const char* task = "b4";
};

TEST_F(ToyChain, IsMovedNowhereWhenEverythingFits) {
  for (const char* planner : {"autoswap", "capacity", "dynprog", "fractional", "greedy", "joint",
                              "largest-first", "modnn", "tflms"}) {
    const Plan plan = plan_with(planner, 14);
    EXPECT_TRUE(plan.offloads.empty() && plan.prefetches.empty()) << planner;
  }
}

// b4 needs y3, y4, d4 and d3; layer-synchronous planners also prefetch y2, one layer ahead.
TEST_F(ToyChain, HasASmallestBudgetForEachPlanner) {
  for (const SmallestBudget& wanted :
       {SmallestBudget{"capacity", 8}, SmallestBudget{"dynprog", 8},
        SmallestBudget{"fractional", 8}, SmallestBudget{"greedy", 8}, SmallestBudget{"joint", 8},
        SmallestBudget{"ibm-ooc", 10}, SmallestBudget{"tflms", 10}, SmallestBudget{"vdnn-all", 10},
        SmallestBudget{"vdnn-dyn", 10}}) {
    const Infeasible refusal = refusal_of(wanted.planner, wanted.pages - 1);
    EXPECT_EQ(refusal.smallest_budget, with_pool(wanted.pages).budget) << wanted.planner;
    EXPECT_EQ(graph[refusal.task].name, wanted.task) << wanted.planner;
    EXPECT_EQ(plan_with(wanted.planner, wanted.pages).budget, with_pool(wanted.pages).budget);
  }
}

// b2 reads y1 and y2, and has d2 and d1.
TEST_F(UnevenChain, HasASmallestBudgetForEachPlanner) {
  for (const char* planner : {"autoswap", "largest-first"}) {
    const Infeasible refusal = refusal_of(planner, 9);
    EXPECT_EQ(refusal.smallest_budget, pages(10)) << planner;
    EXPECT_EQ(graph[refusal.task].name, "b2") << planner;
    EXPECT_TRUE(plan_with(planner, 15).offloads.empty()) << planner;
  }
}

// f3 has a fast algorithm with a workspace of six pages. It is taken if there is room, but not if
// it would cost more moves than it saves, with a page in 4 us.
TEST_F(ToyChain, GetsAFastAlgorithmOnlyWhereItsWorkspacePays) {
  for (const char* planner : {"fractional", "joint"}) {
    profile.link = toy_link();
    give_fast_algorithm(3, pages(6), 60ns);
    EXPECT_EQ(plan_with(planner, 14).runs[3].algorithm, 1U) << planner;
    give_fast_algorithm(3, pages(6), 99ns);
    profile.link = {.offload = um::Bandwidth{1e9}, .prefetch = um::Bandwidth{1e9}};
    EXPECT_EQ(plan_with(planner, 10).runs[3].algorithm, 0U) << planner;
  }
}

// Refused before any work: the work grows with the square of the number of tasks.
TEST(Catalogue, RefusesStepsThatTakeAPlannerTooLong) {
  const TaskGraph graph = chain(10'000, pages(2));
  const Profile profile = flat_profile(graph, 100ns);
  for (const char* planner : {"autoswap", "modnn"}) {
    try {
      static_cast<void>(find_planner(planner).plan(problem(graph, profile, pages(1000))));
      ADD_FAILURE() << planner;
    } catch (const TooManyTasks& refusal) {
      const std::string says = refusal.what();
      EXPECT_NE(says.find("this step has 20002"), std::string::npos) << says;
      EXPECT_NE(says.find("use planner capacity"), std::string::npos) << says;
    }
  }
}

// A budget beyond the resident need is useless, and must not overflow any sum.
TEST_F(ToyChain, IsPlannedAlikeWithWhateverMoreThanItNeeds) {
  for (const auto& planner : planners()) {
    Problem given = with_pool(14);
    const Plan enough = plan_of(*planner, given);
    for (const std::uint64_t bytes : {std::uint64_t{1} << 62U, (std::uint64_t{1} << 63U) - 2,
                                      std::uint64_t{1} << 63U, ~std::uint64_t{0}}) {
      given.budget = um::Bytes{bytes};
      Plan plan = plan_of(*planner, given);
      EXPECT_EQ(reason_against(graph, plan), "") << planner->name();
      plan.budget = enough.budget;
      EXPECT_EQ(plan, enough) << planner->name();
    }
  }
}

// Blocks of 4 TiB in parts of 16 MiB would be a million moves.
TEST(HugeBlocks, AreMovedInFewParts) {
  const TaskGraph graph = chain(4, um::Bytes{1ULL << 42U});
  const Profile profile = flat_profile(graph, std::chrono::seconds{100});
  Problem given{.graph = graph, .profile = profile, .budget = {}, .page = 2_MiB, .chunk = 16_MiB};
  given.budget = um::Bytes{9ULL << 41U};  // half a block more than b4 needs
  const Plan plan = planned("fractional", given);
  EXPECT_FALSE(plan.offloads.empty());
  EXPECT_LE(plan.offloads.size(), 8192U);
}

}  // namespace
}  // namespace spillway::prefetch
