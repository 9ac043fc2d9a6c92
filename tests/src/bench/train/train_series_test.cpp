#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/bench/train/train_comparison.h"
#include "src/bench/train/train_trial.h"
#include "tests/src/small_training.h"

namespace spillway {
namespace {

using um::Bytes;

prefetch::NearNeed need(std::uint64_t smallest, std::uint64_t resident) {
  return {.resident = Bytes{resident},
          .peak_with_workspace = Bytes{resident},
          .smallest = Bytes{smallest}};
}

TEST(Batches, LieAroundTheOneGiven) {
  EXPECT_EQ(batches_around(16, false), (std::vector<std::size_t>{4, 8, 16, 24, 32}));
  EXPECT_EQ(batches_around(16, true), (std::vector<std::size_t>{8, 16, 32}));
}

TEST(Batches, AreRoundedDownAndDiffer) {
  EXPECT_EQ(batches_around(1, false), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(batches_around(2, false), (std::vector<std::size_t>{1, 2, 3, 4}));
  EXPECT_EQ(batches_around(6, false), (std::vector<std::size_t>{1, 3, 6, 9, 12}));
  EXPECT_EQ(batches_around(7, false), (std::vector<std::size_t>{1, 3, 7, 10, 14}));
  EXPECT_EQ(batches_around(1, true), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(batches_around(5, true), (std::vector<std::size_t>{2, 5, 10}));
}

TEST(Batches, HaveTheOneGiven) {
  for (std::size_t batch = 1; batch < 20; ++batch) {
    for (const bool few : {false, true}) {
      const std::vector<std::size_t> batches = batches_around(batch, few);
      EXPECT_EQ(std::ranges::count(batches, batch), 1) << batch;
      EXPECT_TRUE(std::ranges::is_sorted(batches)) << batch;
    }
  }
}

TEST(BudgetAtMiddle, FitsTheBatchBeforeAndNotTheMiddleOne) {
  const std::vector<prefetch::NearNeed> needs{need(10, 100), need(20, 200), need(40, 400)};

  EXPECT_EQ(budget_at_middle(needs, 1), Bytes{150});  // half way from 100 to 200
  EXPECT_EQ(budget_at_middle(needs, 2), Bytes{300});
}

TEST(BudgetAtMiddle, LetsTheLargestBatchRunWhereItCan) {
  const std::vector<prefetch::NearNeed> tight{need(50, 100), need(90, 200), need(180, 400)};
  const std::vector<prefetch::NearNeed> hopeless{need(50, 100), need(90, 200), need(210, 400)};

  EXPECT_EQ(budget_at_middle(tight, 1), Bytes{180});
  EXPECT_EQ(budget_at_middle(hopeless, 1), Bytes{150});
}

TEST(BudgetAtMiddle, OfTheFirstBatchIsHalfItsNeed) {
  EXPECT_EQ(budget_at_middle(std::vector{need(50, 200)}, 0), Bytes{100});
  EXPECT_EQ(budget_at_middle(std::vector{need(50, 200), need(80, 400)}, 0), Bytes{100});
}

class Series : public testing::Test {
 protected:
  const TrainSubject& add_subject(std::size_t batch) {
    return comparison_.add(std::make_unique<TrainSubject>(
        "small", test::small_network(), *context_.backend, StepOptions{.batch = batch}));
  }
  // "batch strategy budget" of each row.
  [[nodiscard]] std::vector<std::string> rows() const {
    std::vector<std::string> texts;
    for (const auto& [key, trial] : comparison_.planned_rows()) {
      texts.push_back(std::to_string(key.batch) + " " + key.strategy.name + " " + key.budget);
    }
    return texts;
  }

  ExecutionContext context_ = test::small_context();
  TrainComparison comparison_{Bytes{1 << 30U}, {}};
};

TEST_F(Series, OverBatchesHasOneBudget) {
  const std::vector<const TrainSubject*> subjects{&add_subject(2), &add_subject(4)};
  const std::vector<TrainStrategy> strategies{find_train_strategy("resident"),
                                              find_train_strategy("joint")};

  add_batch_series(comparison_, subjects, strategies, {.text = "1 KiB", .size = Bytes{1024}});

  EXPECT_EQ(rows(), (std::vector<std::string>{"2 resident 1 KiB", "2 joint 1 KiB",
                                              "4 resident 1 KiB", "4 joint 1 KiB"}));
}

TEST_F(Series, OverBudgetsHasOneResidentRow) {
  const TrainSubject& subject = add_subject(2);
  const std::vector<TrainStrategy> strategies{find_train_strategy("joint"),
                                              find_train_strategy("copy")};

  add_budget_series(comparison_, TrainSeries::kBudget, subject, strategies,
                    std::vector<NamedBudget>{{.text = "60%", .size = Bytes{600}},
                                             {.text = "40%", .size = Bytes{400}}});

  EXPECT_EQ(rows(), (std::vector<std::string>{"2 resident 100%", "2 joint 60%", "2 copy 60%",
                                              "2 joint 40%", "2 copy 40%"}));
  EXPECT_EQ(comparison_.planned_rows()[0].key.budget_bytes, subject.workload().need().resident);
}

TEST_F(Series, ShareWhatIsRunTwice) {
  const TrainSubject& subject = add_subject(2);
  const std::vector<TrainStrategy> strategies{find_train_strategy("joint")};
  const NamedBudget budget{.text = "40%", .size = Bytes{400}};

  add_batch_series(comparison_, std::vector<const TrainSubject*>{&subject}, strategies, budget);
  add_budget_series(comparison_, TrainSeries::kBudget, subject, strategies,
                    std::vector<NamedBudget>{budget});

  EXPECT_EQ(comparison_.planned_rows().size(), 4U);
  EXPECT_EQ(comparison_.trials().size(), 2U);
}

}  // namespace
}  // namespace spillway
