// Trainings on a folder of images: the bits with any number of loader threads and after a resume,
// the settings that a checkpoint keeps, and errors.

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/src/io/images/image_files.h"

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

}  // namespace
}  // namespace spillway::test
