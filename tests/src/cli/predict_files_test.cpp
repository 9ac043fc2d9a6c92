// Files of images that a checkpoint says the class of.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"
#include "tests/src/data/images/image_tree.h"

namespace spillway::test {
namespace {

using nlohmann::json;

// Of a network that has learnt from a tree of cats and dogs.
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

// The same as of the data set.
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

TEST_F(PredictedFiles, AreRefusedWhereTheyAreNotThereOrNotAskedFor) {
  train();
  expect_refused(kFailure, predict({tree_.file("none.jpg")}), {"none.jpg", "No such file"});
  TemporaryFolder empty;
  expect_refused(kFailure, predict({empty.path().string()}), {"there is no .jpg"});
  expect_refused(kFailure, predict(Arguments{"/dev/null"}), {"neither a file nor a folder"});
  for (const std::string flag : {"--data synthetic", "--split train", "--count 3"}) {
    expect_refused(kBadUsage, predict({tree_.file("val"), Arguments{flag.c_str()}}),
                   {flag.substr(0, flag.find(' ')), "is about a data set"});
  }
}

TEST_F(PredictedFiles, AreOfTrainingsOnImages) {
  succeed({"train --net lenet --batch 2 --steps 1 --eval-every 0 --checkpoint", checkpoint()});
  expect_refused(kFailure, predict(tree_.file("val")),
                 {"was trained on synthetic", "--data images:DIR"});
}

// The numbers of its classes would stand for other ones.
TEST_F(PredictedFiles, AreNotJudgedByOtherClasses) {
  train();
  ImageTree other;
  other.add("train/bird/1.jpg", golden_image("usual.jpg"));
  other.remove("train/cat");
  other.remove("val/cat");
  expect_refused(kFailure, {"evaluate", checkpoint(), "--data", "images:" + other.path().string()},
                 {"classes of images:" + other.path().string() + ", bird, dog,",
                  "not those of the training, cat, dog"});
  expect_refused(kFailure, predict({"--data", "images:" + other.path().string()}),
                 {"not those of the training"});
}

}  // namespace
}  // namespace spillway::test
