#include "src/plan/placed_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"
#include "src/plan/arena_use.h"
#include "src/plan/plans.h"
#include "src/step/machine_size_model.h"

namespace spillway {
namespace {

using prefetch::Plan;
using prefetch::Problem;
using um::Bytes;

// GoogLeNet under two fifths of the way from its smallest budget to its need: capacity's first plan
// fills the pool to the last page, and has no fixed places.
class PlacedPlanTest : public testing::Test {
 protected:
  [[nodiscard]] um::Nanoseconds makespan(const Plan& plan) const {
    return prefetch::simulate(step.graph, plan, profile).makespan();
  }
  nets::Network net = nets::build_network("googlenet", {.image = nets::Shape{3, 128, 128}});
  Workload workload{net, MachineSizeModel{}, {.batch = 32}};
  StepToPlan step = workload.training_to_plan();
  prefetch::Profile profile = prefetch::model_profile(step.graph, prefetch::find_machine("v100"));
  PlanRequest request{.memory = MemoryMode::kCopy, .planner = &prefetch::find_planner("capacity")};
  Bytes budget = step.need.smallest + Bytes{(step.need.resident - step.need.smallest).count() / 5};
  Problem problem = make_problem(step.graph, profile, step.budget(budget), step.page, request);
  Plan first = std::get<Plan>(request.planner->plan(problem));
};

TEST_F(PlacedPlanTest, FitsWhereTheFirstPlanDoesNot) {
  ASSERT_FALSE(arena_use(step.graph, first)->fits());
  const Plan placed = with_fixed_places(*request.planner, problem, first);
  EXPECT_TRUE(arena_use(step.graph, placed)->fits());
  EXPECT_EQ(placed.budget, problem.budget);
  EXPECT_TRUE(std::holds_alternative<prefetch::Verified>(prefetch::verify(step.graph, placed)));
  EXPECT_LE(makespan(placed), makespan(first) * 9 / 8);
}

TEST_F(PlacedPlanTest, IsWhatTheCopyModeExecutes) {
  EXPECT_TRUE(arena_use(step.graph, plan_step(step, profile, budget, request))->fits());
  const Plans plans = make_plans(workload, profile, budget, request);
  EXPECT_TRUE(arena_use(step.graph, plans.training.front())->fits());
}

TEST_F(PlacedPlanTest, KeepsThePlanWhosePlacesFit) {
  const Plan placed = with_fixed_places(*request.planner, problem, first);
  EXPECT_EQ(with_fixed_places(*request.planner, problem, placed), placed);
}

// Several budgets from the smallest up: what is kept in spite of places that do not fit is kept
// for a reason, and never slower than it was.
TEST_F(PlacedPlanTest, KeepsThePlanWhereLessMemoryCostsMuch) {
  int kept = 0;
  for (int percent = 0; percent <= 20; percent += 5) {
    const Bytes least = step.need.smallest;
    Problem tight = make_problem(
        step.graph, profile,
        step.budget(least + Bytes{(step.need.resident - least).count() * percent / 100}), step.page,
        request);
    auto planned = request.planner->plan(tight);
    if (!std::holds_alternative<Plan>(planned)) continue;
    const Plan& plan = std::get<Plan>(planned);
    const Plan placed = with_fixed_places(*request.planner, tight, plan);
    EXPECT_TRUE(std::holds_alternative<prefetch::Verified>(prefetch::verify(step.graph, placed)));
    if (arena_use(step.graph, placed)->fits()) continue;
    ++kept;
    EXPECT_EQ(placed, plan) << percent;
  }
  EXPECT_GT(kept, 0);
}

}  // namespace
}  // namespace spillway
