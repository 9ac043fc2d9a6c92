// Small trainings, benched for real.

#include "src/bench/train/train_bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/planners/catalogue.h"
#include "src/bench/train/train_comparison.h"
#include "src/run/executor.h"
#include "tests/refusal.h"
#include "tests/src/small_training.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using um::Bytes;

constexpr Bytes kPlenty{1U << 30U};

class TrainBenchTest : public testing::Test {
 protected:
  explicit TrainBenchTest(Bytes resident_limit = kPlenty) : comparison_{resident_limit, {}} {}

  [[nodiscard]] const TrainSubject& subject() const { return subject_; }
  void add(const std::string& strategy, Bytes budget, TrainSeries series = TrainSeries::kBudget) {
    comparison_.add_row(series, subject_, find_train_strategy(strategy), "b", budget);
  }
  void run(TrainBenchOptions options) {
    TrainBench{context_, comparison_, options, stop_.get_token()}.run([](const std::string&) {});
  }
  void run() { run({.rounds = 2, .steps = 2}); }
  [[nodiscard]] Bytes half_way() const {
    const prefetch::NearNeed& need = subject_.workload().need();
    return Bytes{(need.smallest.count() + need.resident.count()) / 2};
  }

  std::stop_source stop_;
  ExecutionContext context_ = test::small_context();
  TrainComparison comparison_;
  const TrainSubject& subject_ = comparison_.add(std::make_unique<TrainSubject>(
      "small", test::small_network(), *context_.backend,
      StepOptions{.batch = 64, .convolution = ConvolutionAlgorithm::kDirect}));
};

TEST_F(TrainBenchTest, MeasuresEachStrategyWithinItsBudget) {
  for (const char* strategy : {"resident", "on-demand", "capacity", "joint", "copy"}) {
    add(strategy, half_way());
  }
  run();

  const std::vector<TrainRow> rows = comparison_.rows();
  ASSERT_EQ(rows.size(), 5U);
  for (const TrainRow& row : rows) {
    ASSERT_TRUE(row.measurement) << row.key.strategy.name << ": " << row.failure;
    EXPECT_EQ(row.measurement->step.runs, 4U) << "two rounds of two";
    EXPECT_LE(row.measurement->near_peak, row.key.budget_bytes) << row.key.strategy.name;
    EXPECT_GT(row.measurement->near_peak, Bytes{});
    EXPECT_GT(row.predicted.value(), Seconds{0});
    EXPECT_TRUE(row.resident.value().is_measured);
  }
  EXPECT_EQ(rows[0].ratio(), 1.0);
  EXPECT_TRUE(comparison_.complaints(true).empty());
}

TEST_F(TrainBenchTest, RepeatsAResidentRunThatIsLongAgo) {
  for (const char* strategy : {"resident", "joint", "copy"}) add(strategy, half_way());
  run({.rounds = 1, .steps = 2, .resident_age = Seconds{0}});

  const std::vector<TrainRow> rows = comparison_.rows();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].measurement.value().step.runs, 6U) << "once in its turn, once for each other";
  EXPECT_EQ(rows[1].measurement.value().step.runs, 2U);
  EXPECT_EQ(rows[2].measurement.value().step.runs, 2U);
  EXPECT_TRUE(rows[2].resident.value().is_measured);
  EXPECT_TRUE(comparison_.complaints(true).empty());
}

TEST_F(TrainBenchTest, MovesBytesUnderABudget) {
  add("capacity", half_way());
  run();

  const TrainRow row = comparison_.rows().front();
  ASSERT_TRUE(row.measurement) << row.failure;
  EXPECT_GT(row.measurement->bytes_out, Bytes{});
  EXPECT_GT(row.measurement->bytes_in, Bytes{});
}

TEST_F(TrainBenchTest, MeasuresThePlanOfAFile) {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "mine.json").string();
  const Workload& workload = subject_.workload();
  const prefetch::Profile modelled =
      prefetch::model_profile(workload.training().graph, prefetch::find_machine("host"));
  const PlanRequest request{.memory = MemoryMode::kCopy,
                            .planner = &prefetch::find_planner("capacity")};
  const prefetch::Plan mine =
      plan_step(workload.training_to_plan(), modelled, half_way(), request).plan;
  prefetch::write_json(prefetch::to_json(mine, workload.training().graph), file);
  for (const Bytes budget : {half_way(), half_way() - Bytes{4096}}) {
    for (const std::string& text : {file, "copy:" + file}) {
      comparison_.add_row(TrainSeries::kBudget, subject_, plan_file_strategy(text), "b", budget);
    }
  }
  add("joint", half_way());
  run();

  const std::vector<TrainRow> rows = comparison_.rows();
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].key.strategy.name, "mine.json");
  EXPECT_EQ(rows[1].key.strategy.name, "copy:mine.json");
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(rows[i].measurement) << rows[i].failure;
    EXPECT_GT(rows[i].measurement->bytes_out, Bytes{});
    EXPECT_NE(rows[i + 2].failure.find("mine.json was made for a budget of"), std::string::npos)
        << rows[i + 2].failure;
  }
  EXPECT_TRUE(comparison_.complaints(true).empty());
  EXPECT_EQ(test::refusal([] { static_cast<void>(plan_file_strategy("copy:no/where.json")); }),
            "there is no plan no/where.json; spillway plan --out writes one");
}

TEST_F(TrainBenchTest, KeepsABudgetThatIsTooSmallAsARow) {
  add("joint", Bytes{1});
  add("joint", half_way());
  run();

  const std::vector<TrainRow> rows = comparison_.rows();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NE(rows[0].failure.find("too small"), std::string::npos) << rows[0].failure;
  EXPECT_FALSE(rows[0].measurement);
  EXPECT_TRUE(rows[1].measurement);
}

TEST_F(TrainBenchTest, SaysThatResidentNeedsMoreThanTheBudgetOfABatchSeries) {
  add("resident", half_way(), TrainSeries::kBatch);
  add("resident", kPlenty, TrainSeries::kBatch);
  add("resident", half_way(), TrainSeries::kBudget);
  run();

  const std::vector<TrainRow> rows = comparison_.rows();
  EXPECT_NE(rows[0].failure.find("more than the budget"), std::string::npos);
  EXPECT_TRUE(rows[1].measurement);
  EXPECT_TRUE(rows[2].measurement);
  EXPECT_GT(rows[2].key.budget_bytes, half_way()) << "what it needs";
}

TEST_F(TrainBenchTest, EndsWhenTimeIsUp) {
  add("joint", half_way());
  run({.max_time = Seconds{1e-9}});

  EXPECT_TRUE(comparison_.rows().empty());
}

TEST_F(TrainBenchTest, KeepsWhatThereIsWhenItIsStopped) {
  add("joint", Bytes{1});
  add("copy", half_way());
  TrainBench bench{context_, comparison_, {}, stop_.get_token()};

  EXPECT_THROW(bench.run([&](const std::string& text) {
    if (text.starts_with("round")) stop_.request_stop();
  }),
               Interrupted);

  const std::vector<TrainRow> rows = comparison_.rows();
  ASSERT_EQ(rows.size(), 1U) << "the one that has failed";
  EXPECT_FALSE(rows[0].measurement);
}

TEST_F(TrainBenchTest, TellsTheTimeLeft) {
  add("joint", half_way());
  std::vector<std::string> said;
  const TrainBenchOptions options{.rounds = 1, .steps = 1};
  TrainBench{context_, comparison_, options, stop_.get_token()}.run(
      [&](const std::string& text) { said.push_back(text); });

  EXPECT_TRUE(std::ranges::any_of(said, [](const std::string& text) {
    return text.starts_with("round 1 of 1, training 2 of 2: small at batch 64, joint within ") &&
           text.ends_with(" s left");
  })) << said.back();
}

class SmallMachine : public TrainBenchTest {
 protected:
  SmallMachine() : TrainBenchTest{Bytes{1}} {}
};

TEST_F(SmallMachine, SimulatesTheResidentStepThatDoesNotFit) {
  add("joint", half_way());
  add("resident", half_way());
  run();

  const std::vector<TrainRow> rows = comparison_.rows();
  ASSERT_TRUE(rows[0].measurement);
  EXPECT_FALSE(rows[0].resident.value().is_measured);
  EXPECT_GT(rows[0].ratio().value(), 0);
  EXPECT_NE(rows[1].failure.find("too small"), std::string::npos) << rows[1].failure;
  EXPECT_TRUE(comparison_.complaints(true).empty());
}

using TrainRoomTest = TrainBenchTest;

TEST_F(TrainRoomTest, IsEnoughForNearAndFarAndImages) {
  add("joint", half_way());
  const Bytes all = half_way() + subject().workload().need().resident + subject().image_bytes();

  expect_room(comparison_, {.near = all, .ram = all}, false);
  EXPECT_NE(test::refusal([&] {
              expect_room(comparison_, {.near = all, .ram = all - Bytes{1}}, false);
            }).find("or --far file:PATH"),
            std::string::npos);
}

TEST_F(TrainRoomTest, DoesNotCountAFarFile) {
  add("joint", half_way());
  const Bytes all = half_way() + subject().image_bytes();

  expect_room(comparison_, {.near = all, .ram = all}, true);
  EXPECT_THROW(expect_room(comparison_, {.near = all, .ram = all - Bytes{1}}, true), um::Error);
}

TEST_F(TrainRoomTest, IsTakenWholeByTheArenaOfCopies) {
  const Bytes all = 2 * subject().workload().need().peak_with_workspace + subject().image_bytes();
  add("joint", kPlenty);
  expect_room(comparison_, {.near = all, .ram = all}, false);

  add("copy", kPlenty);
  EXPECT_THROW(expect_room(comparison_, {.near = all, .ram = all}, false), um::Error);
}

TEST_F(TrainRoomTest, OfADeviceIsItsOwn) {
  add("joint", half_way());
  const Bytes ram = subject().workload().need().resident + subject().image_bytes();

  expect_room(comparison_, {.near = half_way(), .ram = ram, .is_shared = false}, false);
  EXPECT_THROW(expect_room(comparison_,
                           {.near = half_way() - Bytes{1}, .ram = ram, .is_shared = false}, false),
               um::Error);
  EXPECT_THROW(expect_room(comparison_,
                           {.near = half_way(), .ram = ram - Bytes{1}, .is_shared = false}, false),
               um::Error);
}

}  // namespace
}  // namespace spillway
