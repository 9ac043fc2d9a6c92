// `spillway sweep` for scripts and for people.

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

std::string fixed(double number) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(4) << number;
  return text.str();
}

Arguments sweep_lenet(const Arguments& more) { return {"sweep --net lenet --batch 64", more}; }

// Returns points without numbers that depend on this machine's speed.
json points_of(const Arguments& more) {
  json points = json_of(sweep_lenet({more, "--json -"})).at("points");
  for (json& point : points) point.erase("planning_seconds");
  return points;
}

TEST(SweepJson, HoldsAPointForEachBudgetAndPlanner) {
  const json points =
      points_of("--budgets 1MB,min,100% --planners fractional,resident --machines k40m,v100");

  ASSERT_EQ(points.size(), 12U);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const json& point = points[i];
    EXPECT_EQ(point.at("machine"), i < 6 ? "k40m" : "v100");
    EXPECT_EQ(point.at("p"), i % 6 / 2);
    EXPECT_EQ(point.at("planner"), i % 2 == 0 ? "fractional" : "resident");
    EXPECT_EQ(point.at("net"), "lenet");
    EXPECT_EQ(point.at("batch"), 64);
    for (const char* name : {"budget_bytes", "min_budget_bytes", "resident_bytes", "tasks",
                             "compute_seconds", "link_factor"}) {
      EXPECT_GT(point.at(name), 0) << name;
    }
  }
  const json& too_small = points[0];
  EXPECT_EQ(too_small.at("feasible"), false);
  EXPECT_EQ(too_small.at("smallest_budget_bytes"), too_small.at("min_budget_bytes"));
  EXPECT_TRUE(too_small.at("bounds").is_null());
  EXPECT_TRUE(too_small.at("makespan_seconds").is_null());
  const json& planned = points[2];
  EXPECT_EQ(planned.at("feasible"), true);
  EXPECT_EQ(planned.at("verified"), true);
  EXPECT_EQ(planned.at("budget_bytes"), planned.at("min_budget_bytes"));
  EXPECT_LE(planned.at("peak_bytes"), planned.at("budget_bytes"));
  EXPECT_GT(planned.at("offloaded_bytes"), 0);
  EXPECT_GE(planned.at("recomputed_tasks"), 0);
  for (const char* bound : {"beaumont", "mixed"}) {
    EXPECT_GE(planned.at("bounds").at("offload"), planned.at("bounds").at(bound)) << bound;
  }
  EXPECT_GE(planned.at("makespan_seconds"), planned.at("bounds").at("mixed"));
}

TEST(SweepJson, DoesNotDependOnTheNumberOfThreads) {
  const Arguments flags = "--budgets 5 --links x0.5,x2 --planners fractional,on-demand --threads";
  EXPECT_EQ(points_of({flags, "1"}), points_of({flags, "2"}));
}

TEST(SweepJson, CountsBudgetsFromTheSmallestToTheResidentNeed) {
  const json points = points_of("--budgets 3 --planners fractional");
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].at("budget_bytes"), points[0].at("min_budget_bytes"));
  EXPECT_EQ(points[2].at("budget_bytes"), points[0].at("resident_bytes"));
}

TEST(SweepJson, KeepsMemoryCurvesWhenAsked) {
  const json points = points_of("--budgets min --planners fractional --memory-curves");
  EXPECT_GE(points[0].at("memory_bytes").size(), points[0].at("tasks"));
}

TEST(SweepJson, IsOfThePrecisionThatTheMachinesComputeIn) {
  const Arguments flags = "--budgets 100% --planners resident --machines h100,h200 --precision";
  const json fp32 = points_of({flags, "fp32"});
  const json bf16 = points_of({flags, "bf16"});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(fp32[i].at("precision"), "fp32");
    EXPECT_EQ(bf16[i].at("precision"), "bf16");
    EXPECT_LT(bf16[i].at("compute_seconds"), fp32[i].at("compute_seconds"));
    EXPECT_LT(bf16[i].at("resident_bytes"), fp32[i].at("resident_bytes"));
  }
  const Outcome table = succeed(sweep_lenet({flags, "bf16"}));
  expect_parts(table.output, {"on h200 in bf16, link x1"});
}

TEST(SweepTable, SaysWhichPlannersNeedMore) {
  const Outcome outcome = succeed(sweep_lenet("--budgets min --planners fractional,resident"));
  expect_parts(outcome.output, {"-: resident needs at least"});
  expect_parts(outcome.errors, {"left"});
}

// Returns the words of the table's line that begins with `name`.
std::vector<std::string> row_of(const std::string& table, const std::string& name) {
  const std::size_t begin = table.find('\n' + name + ' ') + 1;
  std::istringstream row{table.substr(begin, table.find('\n', begin) - begin)};
  return {std::istream_iterator<std::string>{row}, {}};
}

std::vector<std::string> bounds_with(const std::string& recompute) {
  const Outcome outcome =
      succeed(sweep_lenet({"--budgets min --planners fractional --recompute", recompute}));
  return row_of(outcome.output, "bound");
}

TEST(SweepTable, HasALineForEachPlannerAndFitsTheTerminal) {
  const Outcome outcome = succeed(sweep_lenet("--budgets 12"));
  std::istringstream output{outcome.output};
  for (std::string line; std::getline(output, line);) EXPECT_LE(line.size(), 80U) << line;
  const std::vector<std::string> budgets = row_of(outcome.output, "budget");
  EXPECT_GE(budgets.size(), 1U + 2U * 5U) << "a number and its unit each, five or more";
  for (const char* planner : {"joint", "capacity", "vdnn-all", "on-demand"}) {
    EXPECT_EQ(row_of(outcome.output, planner).size(), 1 + (budgets.size() - 1) / 2) << planner;
  }
}

std::string bound_of(const std::string& name) {
  const json point = points_of("--budgets min --planners fractional")[0];
  return fixed(point.at("bounds").at(name).get<double>() /
               point.at("compute_seconds").get<double>());
}

TEST(SweepTable, HasTheStrongestBoundOfWhatStrategiesMayDo) {
  EXPECT_NE(bound_of("mixed_turnover"), bound_of("offload_turnover"));
  EXPECT_EQ(bounds_with("auto").at(1), bound_of("mixed_turnover"));
  EXPECT_EQ(bounds_with("off").at(1), bound_of("offload_turnover"));
}

TEST(SweepTable, GivesShortStepsInUnitsThatSuitThem) {
  const Outcome outcome = run_spillway(sweep_lenet("--budgets min --planners joint"));
  const std::string first = outcome.output.substr(0, outcome.output.find('\n'));
  expect_parts(first, {" us with all near"});
}

TEST(SweepJson, TellsWhatNoiseCostsWhenAsked) {
  const json points = points_of("--budgets min --planners joint --noise 10%");
  EXPECT_LT(points[0].at("noise_loss"), 0.1);
  EXPECT_LE(points[0].at("noise_peak_bytes"), points[0].at("budget_bytes"));
}

// A thousand budgets take minutes, so the signal arrives during the sweep.
TEST(InterruptedSweep, KeepsWhatIsDone) {
  const TemporaryFolder folder;
  Program program{{"sweep --net resnet50 --batch 8 --budgets 1000 --planners joint --json",
                   folder.file("points.json")}};
  program.wait_for_error("left");
  program.signal(SIGINT);
  const Outcome outcome = program.finish();

  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_TRUE(outcome.errors.ends_with(
      "\nspillway: interrupted; points that were not reached are left out\n"))
      << outcome.errors;
  const json sweep = json::parse(std::ifstream{folder.file("points.json")});
  EXPECT_GT(sweep.at("points").size(), 0U);
  EXPECT_LT(sweep.at("points").size(), 1000U);
}

TEST(SweepMemory, OfExplicitCopiesMovesWholeBlocks) {
  const auto offloaded = [](const char* memory) {
    const json points =
        points_of({"--budgets min+40% --planners fractional --recompute off --memory", memory});
    return points[0].at("offloaded_bytes").get<std::uint64_t>();
  };
  EXPECT_GT(offloaded("copy"), offloaded("managed")) << "parts of blocks are enough there";
}

// ---- plans from files

TEST(SweepPlans, ComparesThePlanOfAFileWithPlanners) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "mine.json").string();
  succeed({"plan --net lenet --batch 64 --machine v100 --planner capacity --budget min+50% --out",
           file});

  const json points = points_of({"--budgets min,100% --planners capacity --plan", file});

  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[1].at("planner"), "mine.json");
  EXPECT_EQ(points[1].at("feasible"), false) << "its budget is more";
  EXPECT_GT(points[1].at("smallest_budget_bytes"), points[1].at("budget_bytes"));
  EXPECT_EQ(points[3].at("verified"), true);
  EXPECT_GT(points[3].at("offloaded_bytes"), 0);
}

TEST(SweepPlans, ReadsAPlanThatUpdatesOnTheFarSide) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "far.json").string();
  succeed(
      {"plan --net lenet --batch 64 --machine v100 --planner capacity --update far --budget "
       "min+50% --out",
       file});
  const json points = points_of({"--budgets 100% --planners capacity --plan", file});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[1].at("planner"), "far.json");
  EXPECT_EQ(points[1].at("verified"), true);
}

// Budgets and ratios have the same base, wherever the state may be.
TEST(SweepPlans, HaveOneBase) {
  const json near = points_of({"--budgets 100% --planners capacity --state near"});
  for (const char* more : {"--state far", "--update far"}) {
    const json far = points_of({"--budgets 100% --planners capacity", more});
    EXPECT_EQ(far[0].at("budget_bytes"), near[0].at("budget_bytes")) << more;
    EXPECT_EQ(far[0].at("compute_seconds"), near[0].at("compute_seconds")) << more;
  }
}

}  // namespace
}  // namespace spillway::test
