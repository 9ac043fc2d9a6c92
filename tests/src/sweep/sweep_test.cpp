#include "src/sweep/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/planners/answer.h"
#include "prefetch/planners/catalogue.h"
#include "src/program/machine_size_model.h"
#include "src/sweep/scenario.h"

namespace spillway {
namespace {

using um::Bytes;

// LeNet on V100 under a budget below all need, the smallest, and the resident need.
class Sweep : public testing::Test {
 protected:
  Sweep() : scenario_{make_scenario("lenet", 64, lenet(), prefetch::find_machine("v100"))} {
    const prefetch::NearNeed& need = scenario_.workload->need();
    sweep_points_ = {{.scenario = &scenario_, .position = 0, .budget = need.smallest - Bytes{1}},
                     {.scenario = &scenario_, .position = 1, .budget = need.smallest},
                     {.scenario = &scenario_, .position = 2, .budget = need.resident}};
  }

  [[nodiscard]] static ComparedStep lenet() {
    const auto workload = std::make_shared<const Workload>(
        nets::build_network("lenet"), MachineSizeModel{}, StepOptions{.batch = 64});
    return {.near = workload, .planned = workload};
  }

  Scenario scenario_;
  std::vector<SweepPoint> sweep_points_;
  std::array<Strategy, 2> strategies_{
      Strategy{.planner = &prefetch::find_planner("fractional")},
      Strategy{.planner = &prefetch::find_planner("resident"), .may_recompute = false}};
  std::stop_source stop_;
};

TEST_F(Sweep, AnswersEveryStrategyPointByPoint) {
  const std::vector<Point> points = sweep(sweep_points_, strategies_, {}, stop_.get_token());
  ASSERT_EQ(points.size(), 6U);
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].key.position, i / 2);
    EXPECT_EQ(points[i].key.planner, i % 2 == 0 ? "fractional" : "resident");
    EXPECT_EQ(points[i].key.budget, sweep_points_[i / 2].budget);
  }
}

TEST_F(Sweep, SaysWhatWouldWorkWhereThereIsNoPlan) {
  const std::vector<Point> points = sweep(sweep_points_, strategies_, {}, stop_.get_token());
  const prefetch::NearNeed& need = scenario_.workload->need();
  EXPECT_FALSE(points[0].outcome);
  EXPECT_FALSE(points[0].facts.bounds);
  EXPECT_EQ(points[0].smallest_budget, need.smallest);
  EXPECT_TRUE(points[2].outcome) << "fractional, smallest budget";
  EXPECT_FALSE(points[3].outcome) << "resident, smallest budget";
  EXPECT_EQ(points[3].smallest_budget, need.resident);
  EXPECT_TRUE(points[5].outcome) << "resident, all near";
}

class RefusingPlanner final : public prefetch::Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "refusing"; }
  [[nodiscard]] std::string_view description() const override { return "plans short steps"; }
  [[nodiscard]] std::variant<prefetch::Plan, prefetch::Infeasible> plan(
      const prefetch::Problem&) const override {
    throw prefetch::TooManyTasks{"planner refusing plans short steps"};
  }
};

TEST_F(Sweep, ShowsAPlannerThatRefusesTheStepBesideTheOthers) {
  const RefusingPlanner planner;
  strategies_[1].planner = &planner;
  const std::vector<Point> points = sweep(sweep_points_, strategies_, {}, stop_.get_token());
  ASSERT_EQ(points.size(), 6U);
  EXPECT_TRUE(points[4].outcome);
  EXPECT_FALSE(points[5].outcome);
  EXPECT_EQ(to_json(points[5]).at("refusal"), "planner refusing plans short steps");
  EXPECT_FALSE(to_json(points[5]).contains("smallest_budget_bytes"));
}

// Moves more with more room.
class ContraryPlanner final : public prefetch::Planner {
 public:
  explicit ContraryPlanner(std::string_view name) : name_{name} {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view description() const override { return "wastes room"; }
  [[nodiscard]] std::variant<prefetch::Plan, prefetch::Infeasible> plan(
      const prefetch::Problem& problem) const override {
    const prefetch::NearNeed need =
        near_need(problem.graph, prefetch::BlockSizes{problem.graph, problem.page});
    prefetch::Problem less = problem;
    if (problem.budget >= need.resident) less.budget = need.smallest;
    auto result = prefetch::find_planner("fractional").plan(less);
    std::get<prefetch::Plan>(result).budget = problem.budget;
    return result;
  }

 private:
  std::string_view name_;
};

TEST_F(Sweep, TakesJointsPlansForLargerBudgetsToo) {
  const prefetch::NearNeed& need = scenario_.workload->need();
  const ContraryPlanner joint{"joint"};
  const ContraryPlanner other{"other"};
  strategies_ = {Strategy{.planner = &joint}, Strategy{.planner = &other}};
  sweep_points_[0].budget = need.resident - scenario_.workload->page();
  const std::vector<Point> points = sweep(sweep_points_, strategies_, {}, stop_.get_token());
  const PlanOutcome& less = *points[0].outcome;
  const PlanOutcome& most = *points[4].outcome;
  EXPECT_EQ(most.makespan, less.makespan);
  EXPECT_EQ(most.offloaded, less.offloaded);
  EXPECT_EQ(most.made_for, sweep_points_[0].budget);
  EXPECT_EQ(to_json(points[4]).at("made_for_budget_bytes"), sweep_points_[0].budget.count());
  EXPECT_FALSE(points[2].outcome->made_for) << "the smallest budget";
  EXPECT_GT(points[5].outcome->makespan, points[1].outcome->makespan) << "told as it is";
}

TEST_F(Sweep, VerifiesAndComparesWithBounds) {
  for (const Point& point :
       sweep(sweep_points_, strategies_, {.noise = 0.1, .with_memory = true}, stop_.get_token())) {
    if (!point.outcome) continue;
    EXPECT_LE(point.outcome->peak, point.key.budget);
    EXPECT_GE(point.outcome->makespan, point.facts.bounds->mixed);
    EXPECT_GE(*slowdown(point), 1);
    EXPECT_LE(point.outcome->robustness->peak, point.key.budget);
    EXPECT_GE(point.outcome->memory.size(), point.facts.tasks) << "one for each run";
    EXPECT_LE(*std::ranges::max_element(point.outcome->memory), point.outcome->peak);
  }
}

// At the smallest budget LeNet's step waits for the link, unless it may compute again.
TEST_F(Sweep, BoundsWhatTheStrategiesMayDo) {
  const std::vector<Point> with = sweep(sweep_points_, strategies_, {}, stop_.get_token());
  for (Strategy& strategy : strategies_) strategy.may_recompute = false;
  const std::vector<Point> without = sweep(sweep_points_, strategies_, {}, stop_.get_token());
  const prefetch::Bounds& recomputing = *with[2].facts.bounds;
  const prefetch::Bounds& moving = *without[2].facts.bounds;
  EXPECT_LT(recomputing.mixed_transition, recomputing.offload_transition);
  EXPECT_EQ(moving.mixed_transition, recomputing.offload_transition);
  EXPECT_EQ(with[3].facts.bounds->mixed_transition, recomputing.mixed_transition)
      << "a strategy that may not recompute, beside one that may";
}

TEST_F(Sweep, GivesTheSameWithAnyNumberOfThreads) {
  const std::vector<Point> one =
      sweep(sweep_points_, strategies_, {.threads = 1}, stop_.get_token());
  const std::vector<Point> four =
      sweep(sweep_points_, strategies_, {.threads = 4}, stop_.get_token());
  ASSERT_EQ(one.size(), four.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].key.planner, four[i].key.planner);
    ASSERT_EQ(one[i].outcome.has_value(), four[i].outcome.has_value());
    if (one[i].outcome) {
      EXPECT_EQ(one[i].outcome->makespan, four[i].outcome->makespan);
    }
  }
}

// At the smallest budget LeNet's step does not run without page faults, and faults cost more than
// moves that were planned.
TEST_F(Sweep, PredictsWhatPageFaultsCost) {
  strategies_[1] = {.planner = &prefetch::find_planner("on-demand")};
  const std::vector<Point> points =
      sweep(sweep_points_, strategies_, {.with_memory = true}, stop_.get_token());
  ASSERT_TRUE(points[3].outcome);
  EXPECT_GT(points[3].outcome->makespan, points[2].outcome->makespan);
  EXPECT_FALSE(points[3].outcome->paleo);
  EXPECT_TRUE(points[3].outcome->memory.empty()) << "what is near is up to the driver";
}

TEST_F(Sweep, LeavesOutWhatItDidNotBegin) {
  stop_.request_stop();
  EXPECT_TRUE(sweep(sweep_points_, strategies_, {}, stop_.get_token()).empty());
}

TEST_F(Sweep, TellsHowFarItIs) {
  std::vector<double> done;
  const SweepOptions options{
      .on_progress = [&](const SweepProgress& progress) { done.push_back(progress.done); }};
  static_cast<void>(sweep(sweep_points_, strategies_, options, stop_.get_token()));
  ASSERT_EQ(done.size(), sweep_points_.size());
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_DOUBLE_EQ(done.back(), 1);
}

// Forgets all that `joint` waits for.
class CarelessPlanner final : public prefetch::Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "careless"; }
  [[nodiscard]] std::string_view description() const override { return "waits for nothing"; }
  [[nodiscard]] std::variant<prefetch::Plan, prefetch::Infeasible> plan(
      const prefetch::Problem& problem) const override {
    auto planned = prefetch::find_planner("joint").plan(problem);
    if (auto* const plan = std::get_if<prefetch::Plan>(&planned)) {
      for (prefetch::TaskRun& run : plan->runs) run.after = {};
    }
    return planned;
  }
};

TEST_F(Sweep, SaysOfAnUnsoundPlanWhyItMustNotRunBesideTheOthers) {
  const CarelessPlanner planner;
  strategies_[1].planner = &planner;
  const std::vector<Point> points = sweep(sweep_points_, strategies_, {}, stop_.get_token());
  ASSERT_EQ(points.size(), 6U);
  EXPECT_TRUE(points[2].outcome);
  EXPECT_FALSE(points[3].outcome);
  EXPECT_TRUE(points[3].refusal.starts_with("the plan of planner careless for lenet at batch 64"))
      << points[3].refusal;
  EXPECT_NE(points[3].refusal.find(" must not run: "), std::string::npos) << points[3].refusal;
  EXPECT_EQ(to_json(points[3]).at("refusal"), points[3].refusal);
}

// 100 to 210 in twelve: 10 apart.
TEST(LinearBudgets, GoFromTheSmallestToTheResidentNeed) {
  const std::vector<Bytes> budgets =
      linear_budgets({.resident = Bytes{210}, .smallest = Bytes{100}}, 12);
  ASSERT_EQ(budgets.size(), 12U);
  EXPECT_EQ(budgets.front(), Bytes{100});
  EXPECT_EQ(budgets[1], Bytes{110});
  EXPECT_EQ(budgets.back(), Bytes{210});
}

// A range of 25 in three steps: 8.33, 16.67 and 25, rounded down.
TEST(LinearBudgets, RoundDownAndEndExactly) {
  const std::vector<Bytes> budgets =
      linear_budgets({.resident = Bytes{25}, .smallest = Bytes{0}}, 4);
  EXPECT_EQ(budgets, (std::vector{Bytes{0}, Bytes{8}, Bytes{16}, Bytes{25}}));
}

TEST(LinearBudgets, DoNotOverflow) {
  const Bytes huge{1ULL << 62U};
  EXPECT_EQ(linear_budgets({.resident = huge, .smallest = Bytes{0}}, 1000).back(), huge);
  EXPECT_EQ(linear_budgets({.resident = Bytes{25}, .smallest = Bytes{30}}, 2).back(), Bytes{30});
}

TEST(WithFasterLink, ScalesBothDirectionsAndNothingElse) {
  const prefetch::Machine machine = prefetch::find_machine("v100");
  const prefetch::Machine faster = with_faster_link(machine, 4);
  EXPECT_DOUBLE_EQ(faster.link.offload.bytes_per_second(), 50e9);
  EXPECT_DOUBLE_EQ(faster.link.prefetch.bytes_per_second(), 50e9);
  EXPECT_EQ(faster.link.latency, machine.link.latency);
}

}  // namespace
}  // namespace spillway
