// Checkpoints that evaluate and predict.
// Predictions for image files.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/src/io/images/image_files.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

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
}

// Counts all images of the split, in the ten rows of their labels.
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
    EXPECT_GE(item.value("probability", 0.0), 0.1);  // the likeliest of ten classes
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

TEST_F(Evaluated, AConfusionMatrixIsOfImagesWithOneLabel) {
  const Arguments text = "--net gpt:1,1,8,8 --vocabulary 32 --batch 16 --steps 1 --eval-every 1";
  static_cast<void>(run_spillway({"train", text, "--checkpoint", checkpoint()}));
  const std::string sentence = expect_refused(
      test::kFailure, {"evaluate", checkpoint(), "--confusion -"}, {"--confusion is of images"});
  EXPECT_EQ(run_spillway({"evaluate", checkpoint(), "--confusion -"}).errors, sentence)
      << "at once, before tasks are measured";
}

// A network that was trained on a tree of cats and dogs.
class PredictedFiles : public testing::Test {
 protected:
  [[nodiscard]] std::string checkpoint() const { return folder_.file("run"); }
  void train(const Arguments& more = {}) const {
    succeed({"train --net lenet --batch 2 --steps 1 --eval-every 0 --device host --checkpoint",
             checkpoint(), "--data", "images:" + tree_.path().string(), more});
  }
  [[nodiscard]] Arguments predict(const Arguments& more) const {
    return {"predict", checkpoint(), more, "--device host"};
  }

  ImageTree tree_;
  TemporaryFolder folder_;
};

TEST_F(PredictedFiles, HaveClassesByNameInTheOrderGiven) {
  train();
  const std::string dog = tree_.file("val/dog/1.jpg");
  const json items = json_of(predict({dog, tree_.file("train/cat"), "--json -"})).at("items");
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items[0].at("file"), dog);
  EXPECT_EQ(items[1].at("file"), tree_.file("train/cat/1.jpg"));
  EXPECT_EQ(items[2].at("file"), tree_.file("train/cat/2.png"));
  for (const json& item : items) {
    EXPECT_EQ(item.at("class_name"), item.at("class") == 0 ? "cat" : "dog");
    EXPECT_GE(item.at("probability"), 0.5);
    EXPECT_FALSE(item.contains("label"));
    EXPECT_FALSE(item.contains("logits"));
  }
  const Outcome text = succeed(predict({dog, "--top 2"}));
  expect_parts(text.output, {dog + ": class ", "(cat)", "(dog)", ", probability 0.", "; "});
}

// The same logits as for the data set.
TEST_F(PredictedFiles, HaveTheLogitsOfTheDataSet) {
  train();
  const json of_files =
      json_of(predict({tree_.file("val"), "--logits --top 5 --json -"})).at("items");
  const json of_data = json_of(predict("--logits --json -")).at("items");
  ASSERT_EQ(of_files.size(), 2U);
  ASSERT_EQ(of_data.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto logits = of_files[i].at("logits").get<std::vector<float>>();
    EXPECT_EQ(logits, of_data[i].at("logits").get<std::vector<float>>());
    ASSERT_EQ(logits.size(), 2U);
    const json& top = of_files[i].at("top");
    ASSERT_EQ(top.size(), 2U);
    const std::size_t first = logits[0] >= logits[1] ? 0 : 1;
    EXPECT_EQ(top[0].at("class"), first);
    const double odds = std::exp(static_cast<double>(logits[1 - first] - logits[first]));
    EXPECT_NEAR(top[0].at("probability"), 1 / (1 + odds), 1e-6);
    EXPECT_NEAR(top[1].at("probability"), odds / (1 + odds), 1e-6);
  }
}

TEST_F(PredictedFiles, ThatCannotBeReadAreNamedAndTheOthersTold) {
  train();
  tree_.add("broken.jpg", {'x'});
  const std::string broken = tree_.file("broken.jpg");
  const Outcome some = run_spillway(predict({broken, tree_.file("val/dog/1.jpg")}));
  EXPECT_EQ(some.exit_code, kFailure);
  expect_parts(some.output, {tree_.file("val/dog/1.jpg") + ": class "});
  expect_parts(some.errors, {"warning: " + broken + " is neither JPEG nor PNG",
                             "spillway: 1 of 2 files cannot be read as images\n"});
  const Outcome none = run_spillway(predict({broken, "--json -"}));
  EXPECT_EQ(none.exit_code, kFailure);
  EXPECT_EQ(json::parse(none.output).at("items").size(), 0U);
  expect_parts(none.errors, {"1 of 1 file cannot be read as images\n"});
}

}  // namespace
}  // namespace spillway::test
