// Checkpoints that are evaluated and predict.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using nlohmann::json;
using test::Arguments;
using test::expect_refused;
using test::json_of;
using test::run_spillway;

class Evaluated : public testing::Test {
 protected:
  [[nodiscard]] std::string checkpoint() const { return folder_.file("checkpoint"); }
  [[nodiscard]] json train(const Arguments& flags) const {
    return summary_of(run_spillway(
        {"train --net lenet --batch 16 --threads 1 --json - --checkpoint", checkpoint(), flags}));
  }
  test::TemporaryFolder folder_;
};

TEST_F(Evaluated, HasTheLossAndAccuracyThatTrainingSaid) {
  const json summary = train("--steps 8 --eval-every 8 --ema 0.5");
  const json result = json_of({"evaluate", checkpoint(), "--budget min+20% --threads 1 --json -"});
  EXPECT_EQ(result.value("loss", 0.0), summary.value("test_loss", 1.0));
  EXPECT_EQ(result.value("accuracy", 0.0), summary.value("test_accuracy", 1.0));
  EXPECT_EQ(result.value("top5", 0.0), summary.value("test_top5", 1.0));
  EXPECT_GE(result.value("top5", 0.0), result.value("accuracy", 1.0));
  EXPECT_LE(result.value("near_peak_bytes", 2U), result.value("budget_bytes", 1U));
  EXPECT_EQ(result.value("averaged", false), true);
}

TEST_F(Evaluated, TextHasItsPerplexity) {
  const json summary = summary_of(run_spillway(
      {"train --net gpt:1,1,8,8 --vocabulary 32 --batch 16 --steps 2 --eval-every 2 --threads 1 "
       "--json - --checkpoint",
       checkpoint()}));
  const json result = json_of({"evaluate", checkpoint(), "--threads 1 --json -"});
  EXPECT_EQ(result.value("perplexity", 0.0), summary.value("perplexity", 1.0));
  expect_refused(test::kFailure, {"predict", checkpoint()}, {"which class", "gpt:1,1,8,8"});
}

// All images of the split, in the ten rows of their labels.
TEST_F(Evaluated, ConfusionMatrixCountsEveryImage) {
  static_cast<void>(train("--steps 1 --eval-every 0"));
  const test::Outcome outcome = run_spillway({"evaluate", checkpoint(), "--confusion -"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  std::istringstream text{outcome.output};
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line, "label,0,1,2,3,4,5,6,7,8,9");
  int rows = 0;
  long long images = 0;
  while (std::getline(text, line)) {
    std::istringstream cells{line};
    std::string cell;
    std::getline(cells, cell, ',');
    EXPECT_EQ(cell, std::to_string(rows++));
    while (std::getline(cells, cell, ',')) images += std::stoll(cell);
  }
  EXPECT_EQ(rows, 10);
  const json result = json_of({"evaluate", checkpoint(), "--json -"});
  EXPECT_EQ(images, result.value("samples", 0));
}

TEST_F(Evaluated, PredictionsHaveAClassAndItsProbability) {
  static_cast<void>(train("--steps 1 --eval-every 0"));
  const json items =
      json_of({"predict", checkpoint(), "--count 5 --split train --json -"}).value("items", json{});
  ASSERT_EQ(items.size(), 5U);
  for (const json& item : items) {
    EXPECT_LT(item.value("class", 10), 10);
    EXPECT_GE(item.value("probability", 0.0), 0.1);  // of ten classes, the likeliest
    EXPECT_LE(item.value("probability", 2.0), 1.0);
  }
  const test::Outcome text = run_spillway({"predict", checkpoint(), "--count 2"});
  EXPECT_EQ(text.output.substr(0, 9), "0: class ") << text.errors;
}

TEST_F(Evaluated, TheBestCheckpointIsFound) {
  static_cast<void>(
      train("--steps 3 --eval-every 1 --lr 0 --checkpoint-every 1 --keep 1 --keep-best"));
  EXPECT_EQ(json_of({"evaluate", checkpoint(), "--best --json -"}).value("step", 0), 1);
  EXPECT_EQ(json_of({"evaluate", checkpoint(), "--json -"}).value("step", 0), 3);
}

// Before anything is computed.
TEST_F(Evaluated, FlagsOfEvaluationsNeedOne) {
  for (const char* flag : {"--keep-best", "--early-stop 2", "--confusion -"}) {
    const Arguments training{"train --net lenet --batch 16 --steps 3 --checkpoint", checkpoint(),
                             flag};
    expect_refused(test::kBadUsage, {training, "--eval-every 0"}, {"--eval-every 0 turns off"});
    expect_refused(test::kFailure, training,
                   {"of evaluations, and there is none", "ends after 3 steps", "--eval-every N"});
  }
  EXPECT_FALSE(std::filesystem::exists(checkpoint()));
}

TEST_F(Evaluated, AConfusionMatrixIsOfImagesWithOneLabel) {
  const Arguments text = "--net gpt:1,1,8,8 --vocabulary 32 --batch 16 --steps 1 --eval-every 1";
  expect_refused(test::kFailure, {"train", text, "--confusion -"},
                 {"--confusion is of images with one label each", "gpt:1,1,8,8"});
  static_cast<void>(run_spillway({"train", text, "--checkpoint", checkpoint()}));
  const std::string sentence = expect_refused(
      test::kFailure, {"evaluate", checkpoint(), "--confusion -"}, {"--confusion is of images"});
  EXPECT_EQ(run_spillway({"evaluate", checkpoint(), "--confusion -"}).errors, sentence)
      << "at once, before tasks are measured";
}

TEST_F(Evaluated, RefusalsSayWhatIsMissing) {
  expect_refused(test::kFailure, {"evaluate", folder_.file("none")}, {"no checkpoint in"});
  static_cast<void>(train("--steps 1 --eval-every 0"));
  expect_refused(test::kFailure, {"evaluate", checkpoint(), "--best"},
                 {"never evaluated", "--best"});
  expect_refused(test::kFailure, {"evaluate", checkpoint(), "--budget 1KiB"}, {"smallest"});
  expect_refused(test::kBadUsage, {"evaluate", checkpoint(), "--split validation"},
                 {"--split", "test", "train"});
}

}  // namespace
}  // namespace spillway
