// Trainings on a folder of images: the bits with any number of loader threads and after a resume,
// the settings that a checkpoint keeps, and errors.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <fstream>
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

// Five training images, two of them in a class of their own; two steps an epoch.
class ImageTraining : public testing::Test {
 protected:
  [[nodiscard]] Arguments training(const Arguments& more) const {
    return {"train --net lenet --batch 2 --device host --memory resident --json - --data",
            "images:" + tree_.path().string(), more};
  }

  [[nodiscard]] std::vector<json> lines(const Arguments& more) const {
    std::istringstream output{succeed(training(more)).output};
    std::vector<json> all;
    for (std::string line; std::getline(output, line);) all.push_back(json::parse(line));
    return all;
  }

  [[nodiscard]] json summary(const Arguments& more) const {
    return lines(more).back().at("summary");
  }

  ImageTree tree_;
};

TEST_F(ImageTraining, HasTheSameBitsWithAnyNumberOfLoaderThreads) {
  const json one = summary("--epochs 3 --augment strong --loader-threads 1");
  for (const std::string threads : {"2", "8", "auto"}) {
    const json more = summary({"--epochs 3 --augment strong --loader-threads", threads});
    EXPECT_EQ(more.at("weights_sha256"), one.at("weights_sha256")) << threads;
    EXPECT_EQ(more.at("test_loss"), one.at("test_loss")) << threads;
  }
  EXPECT_NE(summary("--epochs 3 --augment none").at("weights_sha256"), one.at("weights_sha256"));
}

TEST_F(ImageTraining, GoesOnAsItBegan) {
  const json whole = summary("--steps 5 --augment strong --flip 0.9 --eval-crop 0.5");
  const TemporaryFolder folder;
  const std::string checkpoint = folder.file("kept");
  const json begun =
      summary({"--steps 3 --augment strong --flip 0.9 --eval-crop 0.5 --checkpoint", checkpoint});
  EXPECT_NE(begun.at("weights_sha256"), whole.at("weights_sha256"));
  const json rest = summary({"--steps 5 --loader-threads 3 --resume --checkpoint", checkpoint});
  EXPECT_EQ(rest.at("weights_sha256"), whole.at("weights_sha256"));
  EXPECT_EQ(rest.at("test_loss"), whole.at("test_loss"));
}

TEST_F(ImageTraining, MixesTheSameWithAnyNumberOfThreadsAndGoesOnSo) {
  const std::string flags = "--hue 0.2 --mixup 0.2 --cutmix 1";
  const json one = summary({"--steps 6 --loader-threads 1", Arguments{flags.c_str()}});
  EXPECT_EQ(one.at("mixing").dump(), R"({"cutmix":1.0,"mixup":0.2})");
  const json eight = summary({"--steps 6 --loader-threads 8", Arguments{flags.c_str()}});
  EXPECT_EQ(eight.at("weights_sha256"), one.at("weights_sha256"));
  EXPECT_NE(summary("--steps 6").at("weights_sha256"), one.at("weights_sha256"));
  EXPECT_NE(summary("--steps 6 --mixup 0.2 --cutmix 1").at("weights_sha256"),
            one.at("weights_sha256"));
  const TemporaryFolder folder;
  const std::string checkpoint = folder.file("kept");
  const json begun = summary({"--steps 3", Arguments{flags.c_str()}, "--checkpoint", checkpoint});
  EXPECT_NE(begun.at("weights_sha256"), one.at("weights_sha256"));
  const json rest = summary({"--steps 6 --resume --checkpoint", checkpoint});
  EXPECT_EQ(rest.at("weights_sha256"), one.at("weights_sha256"));
}

TEST_F(ImageTraining, MixesImagesOfAnyDataSet) {
  const auto trained = [](const Arguments& more) {
    return summary_of(succeed({small_training("--device host --json -"), more}));
  };
  EXPECT_NE(trained("--mixup 1").at("weights_sha256"), trained({}).at("weights_sha256"));
}

TEST_F(ImageTraining, KeepsTheNamesOfItsClasses) {
  tree_.add("train/ant/1.jpg", golden_image("grey.jpg"));
  const TemporaryFolder folder;
  const json result = summary({"--steps 1 --checkpoint", folder.file("kept")});
  EXPECT_EQ(result.at("classes"), 3);  // one per folder
  const json manifest = json::parse(std::ifstream{folder.file("kept/step-1.json")});
  EXPECT_EQ(manifest.at("class_names"), (json{"ant", "cat", "dog"}));
  EXPECT_FLOAT_EQ(manifest.at("images").at("crop_area").get<float>(), 0.08F);
}

// Each kind of data is named before the first step, and so is that none was given.
TEST_F(ImageTraining, NamesItsData) {
  const std::string folder = tree_.path().string();
  expect_parts(succeed(training("--steps 1")).errors,
               {"\nimages in " + folder + ": 4 to learn from, 2 to test on, 2 classes\n"});
  expect_parts(succeed(training("--steps 1 --train-samples 3")).errors,
               {"\nthe first 3 of images in " + folder + ": 3 to learn from, 2 to test on"});
  expect_parts(succeed(small_training()).errors,
               {"\nsynthetic images of 10 classes (no --data was given): 50000 to learn from, 1000 "
                "to test on\n"});
  expect_parts(succeed(small_training("--data synthetic")).errors,
               {"\nsynthetic images of 10 classes: 50000 to learn from"});
  expect_parts(succeed("train --net gpt:1,2,8,8 --batch 2 --steps 1").errors,
               {"tokens (no --data was given): 50000 to learn from, 200 to test on, of 8 tokens "
                "each\n"});
}

TEST_F(ImageTraining, CountsConfusionsByTheNamesOfClasses) {
  tree_.add("train/ant, red/1.jpg", golden_image("grey.jpg"));
  tree_.add("val/ant, red/1.jpg", golden_image("grey.jpg"));
  const TemporaryFolder folder;
  const auto expect_names = [&](const std::string& path) {
    std::ifstream file{path};
    for (const std::string begin :
         {"label,\"ant, red\",cat,dog", "\"ant, red\",", "cat,", "dog,"}) {
      std::string line;
      std::getline(file, line);
      EXPECT_TRUE(line.starts_with(begin)) << line;
    }
  };
  succeed(training(
      {"--epochs 1 --checkpoint", folder.file("kept"), "--confusion", folder.file("trained.csv")}));
  expect_names(folder.file("trained.csv"));
  succeed(
      {"evaluate --device host", folder.file("kept"), "--confusion", folder.file("judged.csv")});
  expect_names(folder.file("judged.csv"));
}

TEST_F(ImageTraining, TakesClassesOfOddNames) {
  tree_.add("train/\xFF\n\x1B[31m/1.jpg", golden_image("grey.jpg"));
  tree_.add("train/" + std::string(255, 'x') + "/1.jpg", golden_image("grey.jpg"));
  const TemporaryFolder folder;
  EXPECT_EQ(summary({"--steps 1 --checkpoint", folder.file("kept")}).at("classes"), 4);
  const json names = json::parse(std::ifstream{folder.file("kept/step-1.json")}).at("class_names");
  ASSERT_EQ(names.size(), 4U);
  EXPECT_EQ(names[3].dump().find("\\n"), std::string::npos);
}

TEST_F(ImageTraining, SaysHowLongEachStepWaitedForData) {
  const std::vector<json> all = lines("--steps 2 --augment none");
  for (std::size_t i = 0; i < 2; ++i) EXPECT_GE(all[i].at("data_wait_seconds"), 0.0);
  EXPECT_GE(all.back().at("summary").at("data_wait_seconds"), 0.0);
}

TEST_F(ImageTraining, StopsAtABrokenImageOrSkipsIt) {
  tree_.add("train/cat/3.jpg", {'x'});
  const std::string name = tree_.file("train/cat/3.jpg");
  const Outcome stopped = run_spillway(training("--epochs 2"));
  EXPECT_EQ(stopped.exit_code, kFailure);
  expect_parts(stopped.errors, {name, "is neither JPEG nor PNG", "--on-broken skip"});
  const Outcome skipped = succeed(training("--epochs 3 --on-broken skip"));
  expect_parts(skipped.errors, {"warning: " + name, "skipped 1 broken image file\n"});
  EXPECT_EQ(skipped.errors.find(name), skipped.errors.rfind(name));  // once
  EXPECT_NE(skipped.output.find("\"broken_files\":1"), std::string::npos);
}

// Its header is whole, so that it is found in a step.
TEST_F(ImageTraining, GoesOnWhereAnImageIsCutShort) {
  FileContent cut = golden_image("usual.jpg");
  cut.resize(cut.size() / 2);
  tree_.add("train/cat/3.jpg", cut);
  const TemporaryFolder folder;
  const Arguments kept =
      training({"--steps 9 --checkpoint-every 1 --checkpoint", folder.file("run")});
  const Outcome stopped = run_spillway(kept);
  EXPECT_EQ(stopped.exit_code, kFailure);
  expect_parts(stopped.errors, {"/train/cat/3.jpg is cut short; remove it, or use --on-broken skip "
                                "(with --resume, only the latter)\n"});
  succeed({kept, "--resume auto --on-broken skip"});
}

TEST_F(ImageTraining, NamesAllBrokenFilesBeforeItMeasures) {
  const FileContent text{'N', 'o', 'n', 'e'};
  for (const char* const name : {"train/dog/7.jpg", "train/cat/8.png", "val/cat/9.jpg"}) {
    tree_.add(name, text);
  }
  const Outcome stopped = run_spillway(training("--epochs 3"));
  EXPECT_EQ(stopped.exit_code, kFailure);
  expect_parts(stopped.errors, {"3 files are broken: ", "/train/dog/7.jpg is neither JPEG nor PNG",
                                "/train/cat/8.png is", "/val/cat/9.jpg is", "remove them, or use"});
  EXPECT_EQ(stopped.errors.find("measuring"), std::string::npos) << stopped.errors;
  tree_.remove("train/dog/7.jpg");
  const Outcome first = run_spillway(training("--epochs 1 --train-samples 2 --eval-every 0"));
  EXPECT_EQ(first.exit_code, 0) << "none of those that are read is broken: " << first.errors;
}

TEST_F(ImageTraining, EndsCleanlyWhenItIsInterrupted) {
  Program program{training("--epochs 100000 --loader-threads 8")};
  program.wait_for_lines(3);
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish().exit_code, 128 + SIGTERM);
}

// Checkpoints that evaluate and predict.
// Predictions for image files.

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
