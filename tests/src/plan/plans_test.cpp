#include "src/plan/plans.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/placement/placed_step.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/verify.h"
#include "src/plan/memory_choice.h"
#include "src/plan/plan_question.h"
#include "src/program/machine_size_model.h"
#include "tests/refusal.h"

namespace spillway {
namespace {

using prefetch::Plan;
using test::refusal;
using um::Bytes;

class PlansTest : public testing::Test {
 protected:
  [[nodiscard]] Bytes middle() const {
    return workload.need().smallest +
           Bytes{(workload.need().resident - workload.need().smallest).count() / 2};
  }
  [[nodiscard]] PlanRequest request(MemoryMode memory, const char* planner = "joint") const {
    return {.memory = memory, .planner = &prefetch::find_planner(planner)};
  }
  [[nodiscard]] Plans plans_within(Bytes budget, const PlanRequest& wanted,
                                   std::optional<PlanOfFile> file = {}) const {
    return answer({.steps = workload,
                   .profile = profile,
                   .budget = budget,
                   .request = wanted,
                   .file = std::move(file)})
        .plans;
  }
  [[nodiscard]] std::string refused(Plan plan, MemoryMode memory, Bytes budget) const {
    return refusal([&] {
      return plans_within(budget, request(memory),
                          PlanOfFile{.plan = std::move(plan), .name = "p.json"});
    });
  }
  nets::Network net = nets::build_network("vgg16", {.image = nets::Shape{3, 64, 64}});
  Workload workload{net, MachineSizeModel{}, {.batch = 8}};
  prefetch::Profile profile =
      prefetch::model_profile(workload.training().graph, prefetch::find_machine("v100"));
  const PlanRequest managed = request(MemoryMode::kManaged);
};

TEST_F(PlansTest, TakeNoMoreThanTheyUse) {
  for (const MemoryMode memory : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const Bytes much = 2 * workload.need().peak_with_workspace;
    Plans plans = plans_within(much, request(memory));
    take_what_is_used(plans, workload, memory);
    EXPECT_LT(plans.budget, workload.need().peak_with_workspace + workload.page());
    EXPECT_EQ(plans.evaluation.budget, workload.evaluation_budget(plans.budget));
    const Plan& plan = plans.training;
    EXPECT_EQ(plan.budget, workload.training_budget(plans.budget));
    const auto verdict = prefetch::verify(workload.training().graph, plan);
    ASSERT_TRUE(std::holds_alternative<prefetch::Verified>(verdict));
    if (memory == MemoryMode::kManaged) {
      EXPECT_LT(plan.budget - std::get<prefetch::Verified>(verdict).peak, workload.page());
    } else {
      EXPECT_TRUE(prefetch::arena_use(workload.training().graph, plan)->fits());
    }
  }
}

TEST_F(PlansTest, KeepTheirBudgetWherePagesFault) {
  Plans plans = plans_within(middle(), request(MemoryMode::kManaged, "on-demand"));
  take_what_is_used(plans, workload, MemoryMode::kManaged);
  EXPECT_EQ(plans.budget, middle());
}

// ---- Workload

TEST_F(PlansTest, NeedsCoverTrainingAndEvaluation) {
  const prefetch::BlockSizes training{workload.training().graph, workload.page()};
  const prefetch::NearNeed own = near_need(workload.training().graph, training);
  EXPECT_GE(workload.need().smallest, own.smallest);
  EXPECT_LT(workload.need().smallest, workload.need().resident);
  EXPECT_LE(workload.need().resident, workload.need().peak_with_workspace);
  EXPECT_EQ(workload.page(), prefetch::choose_page(workload.training().graph));
}

TEST_F(PlansTest, HaveNoWorkloadBeyondWhatSumsAndTablesHold) {
  const nets::Network large = nets::build_network("vgg16", {.image = nets::Shape{3, 1024, 1024}});
  EXPECT_EQ(refusal([&] {
              return Workload{large, MachineSizeModel{}, {.batch = 1U << 20U}}.page();
            }),
            "a step of batch 1048576 has more than 1024 TiB of tensors, which is more than can be "
            "planned; use a smaller --batch");
}

// 43,690 samples and more were too many for a page of any size to keep their evaluation near.
TEST_F(PlansTest, HavePagesForBatchesOfAnySize) {
  const Workload many{net, MachineSizeModel{}, {.batch = 1U << 20U}};
  EXPECT_LE(many.page(), prefetch::kLargestPage);
}

TEST_F(PlansTest, RunBudgetUndoesTrainingBudget) {
  const Bytes budget = middle();
  EXPECT_EQ(workload.run_budget(workload.training_budget(budget)), budget);
}

TEST_F(PlansTest, EvaluationHasNoMoreRoomThanTrainingLeavesIt) {
  const Bytes budget = middle();
  EXPECT_LE(workload.evaluation_budget(budget), budget);
  const prefetch::BlockSizes training{workload.training().graph, workload.page()};
  const prefetch::BlockSizes evaluation{workload.evaluation().graph, workload.page()};
  ASSERT_LT(evaluation.pinned(), training.pinned());
  EXPECT_LE(workload.evaluation_budget(budget) - evaluation.pinned(), budget - training.pinned());
}

// ---- plans

TEST_F(PlansTest, AreFeasibleAtTheSmallestBudgetInEveryMode) {
  for (const MemoryMode memory : {MemoryMode::kManaged, MemoryMode::kCopy}) {
    const Plans plans = plans_within(workload.need().smallest, request(memory));
    const auto verdict = prefetch::verify(workload.training().graph, plans.training);
    EXPECT_LE(std::get<prefetch::Verified>(verdict).peak, workload.need().smallest);
    EXPECT_FALSE(plans.training.offloads.empty());
  }
}

TEST_F(PlansTest, AreRefusedBelowTheSmallestBudgetInOneSentenceThatSaysWhatWorks) {
  const Bytes budget = workload.need().smallest - Bytes{1};
  const std::string sentence = refusal([&] { return plans_within(budget, managed); });
  const std::string task = workload.training().graph[workload.need().largest_task].name;
  EXPECT_NE(sentence.find("task " + task + " needs"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find(std::to_string(workload.need().smallest.count()) + " bytes"),
            std::string::npos)
      << sentence;
}

TEST_F(PlansTest, OfResidentRunsTakeOnlyWhatTheyNeed) {
  const Plans plans =
      plans_within(2 * workload.need().peak_with_workspace, request(MemoryMode::kResident));
  EXPECT_LT(plans.budget, 2 * workload.need().peak_with_workspace);
  EXPECT_GE(plans.budget, workload.need().resident);
  EXPECT_TRUE(plans.training.offloads.empty());
  const std::string sentence =
      refusal([&] { return plans_within(middle(), request(MemoryMode::kResident)); });
  EXPECT_NE(sentence, "accepted");
}

// ---- plans from files

TEST_F(PlansTest, OfAFileAreUsedWhenTheyFit) {
  const Plan plan = plan_step(workload.training_to_plan(), profile, middle(), managed).plan;
  const Plans plans = plans_within(middle(), managed, PlanOfFile{.plan = plan, .name = "p.json"});
  EXPECT_EQ(plans.training, plan);
  EXPECT_EQ(plans.budget, middle());
}

TEST_F(PlansTest, OfAFileAreRefusedWithASmallerBudget) {
  const Plan plan = plan_step(workload.training_to_plan(), profile, middle(), managed).plan;
  EXPECT_EQ(refused(plan, MemoryMode::kManaged, middle() - Bytes{1}).find("p.json was made for a "),
            0U);
}

TEST_F(PlansTest, OfAFileAreRefusedWhenTheyMovePartsOfBlocksInCopyMode) {
  const Plan demand = plan_step(workload.training_to_plan(), profile, middle(),
                                request(MemoryMode::kManaged, "on-demand"))
                          .plan;
  EXPECT_EQ(refused(demand, MemoryMode::kCopy, middle()).find("p.json moves parts of blocks"), 0U);
}

TEST_F(PlansTest, OfAFileAreRefusedWithOtherPages) {
  Plan plan = plan_step(workload.training_to_plan(), profile, middle(), managed).plan;
  plan.page = 2 * plan.page;
  EXPECT_EQ(refused(plan, MemoryMode::kManaged, middle()).find("p.json moves pages of "), 0U);
}

TEST_F(PlansTest, OfAFileAreRefusedWhenTheyDoNotVerify) {
  Plan plan = plan_step(workload.training_to_plan(), profile, middle(), managed).plan;
  for (prefetch::TaskRun& run : plan.runs) run.after.prefetches = 0;
  EXPECT_EQ(refused(plan, MemoryMode::kManaged, middle()).find("p.json must not run: "), 0U);
}

// ---- smallest budgets

// The smallest budget that the planner names for a whole run, above one that it refuses; nothing
// where it refuses none of a few.
std::optional<Bytes> named_budget(PlanQuestion question) {
  const prefetch::NearNeed& need = question.steps.need();
  for (const Bytes budget : {need.smallest + Bytes{(need.resident - need.smallest).count() / 2},
                             need.smallest, Bytes{1}}) {
    question.budget = budget;
    try {
      static_cast<void>(answer(question));
    } catch (const BudgetTooSmall& refusal) {
      return refusal.smallest();
    }
  }
  return std::nullopt;
}

TEST(SmallestBudgets, OfEveryPlannerWorkAndOnePageLessDoesNot) {
  for (const char* name : {"lenet", "alexnet"}) {
    const nets::Network net = nets::build_network(name, {});
    const Workload workload{net, MachineSizeModel{}, {.batch = 3}};
    const prefetch::Profile profile =
        prefetch::model_profile(workload.training().graph, prefetch::find_machine("v100"));
    for (const auto& planner : prefetch::planners()) {
      for (const MemoryMode memory : {MemoryMode::kManaged, MemoryMode::kCopy}) {
        PlanQuestion question{.steps = workload,
                              .profile = profile,
                              .budget = {},
                              .request = {.memory = memory, .planner = planner.get()}};
        const auto named = named_budget(question);
        const std::string what = std::string{name} + ": " + std::string{planner->name()};
        ASSERT_TRUE(named) << what;
        question.budget = *named;
        EXPECT_NO_THROW(static_cast<void>(answer(question))) << what;
        question.budget = *named - workload.page();
        EXPECT_THROW(static_cast<void>(answer(question)), BudgetTooSmall) << what;
      }
    }
  }
}

using prefetch::Problem;

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
  ASSERT_FALSE(prefetch::arena_use(step.graph, first)->fits());
  const Plan placed = with_fixed_places(*request.planner, problem, first);
  EXPECT_TRUE(prefetch::arena_use(step.graph, placed)->fits());
  EXPECT_EQ(placed.budget, problem.budget);
  EXPECT_TRUE(std::holds_alternative<prefetch::Verified>(prefetch::verify(step.graph, placed)));
  EXPECT_LE(makespan(placed), makespan(first) * 9 / 8);
}

TEST_F(PlacedPlanTest, IsWhatTheCopyModeExecutes) {
  EXPECT_TRUE(
      prefetch::arena_use(step.graph, plan_step(step, profile, budget, request).plan)->fits());
  const Plans plans =
      answer({.steps = workload, .profile = profile, .budget = budget, .request = request}).plans;
  EXPECT_TRUE(prefetch::arena_use(step.graph, plans.training)->fits());
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
    if (prefetch::arena_use(step.graph, placed)->fits()) continue;
    ++kept;
    EXPECT_EQ(placed, plan) << percent;
  }
  EXPECT_GT(kept, 0);
}

// ---- the memory mode

TEST(MemoryChoice, IsWhatTheDeviceAndItsFarMemoryAllow) {
  struct MemoryCase {
    um::MemoryFacts device;
    const char* far;
    MemoryMode mode;
  };
  const um::MemoryFacts host;
  const um::MemoryFacts gpu{.hints_reach_files = false};
  const um::MemoryFacts without_hints{.moves_by_hints = false, .hints_reach_files = false};
  const um::MemoryFacts integrated{
      .moves_by_hints = false, .hints_reach_files = false, .is_host_ram = true};
  for (const MemoryCase& each : {MemoryCase{host, "", MemoryMode::kManaged},
                                 {host, "/scratch", MemoryMode::kManaged},
                                 {gpu, "", MemoryMode::kManaged},
                                 {gpu, "/scratch", MemoryMode::kCopy},
                                 {without_hints, "", MemoryMode::kCopy},
                                 {without_hints, "/scratch", MemoryMode::kCopy},
                                 {integrated, "", MemoryMode::kResident},
                                 {integrated, "/scratch", MemoryMode::kCopy}}) {
    const MemoryChoice choice = choose_memory(each.device, {.file = each.far});
    EXPECT_EQ(choice.mode, each.mode) << choice.reason << each.far;
    EXPECT_FALSE(choice.reason.empty());
  }
}

}  // namespace
}  // namespace spillway
