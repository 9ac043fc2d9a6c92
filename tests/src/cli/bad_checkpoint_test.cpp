// Checkpoints that are not there, belong to something else, or are damaged.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using test::expect_refused;
using test::joined;
using test::Outcome;
using test::Program;
using test::run_spillway;
using test::TemporaryFolder;

class BadCheckpoint : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.file("checkpoint"); }
  [[nodiscard]] std::string description() const { return path() + "/checkpoint.json"; }
  [[nodiscard]] std::string tensors() const { return path() + "/step-2.safetensors"; }

  [[nodiscard]] Program::Arguments training(const std::string& batch = "8",
                                            const std::string& seed = "1") const {
    return {"train", "--net",   "lenet", "--batch",      batch, "--seed",
            seed,    "--steps", "2",     "--checkpoint", path()};
  }
  [[nodiscard]] Program::Arguments resumed() const { return joined(training(), {"--resume"}); }

  [[nodiscard]] std::string plan() const { return path() + "/plan.json"; }

  static std::string content(const std::string& file) {
    std::ifstream stream{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
  }

  void make_checkpoint() const {
    const Outcome outcome = run_spillway(training());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    ASSERT_TRUE(fs::exists(description()));
    ASSERT_TRUE(fs::exists(tensors()));
  }

  void tamper(const std::string& key, const json& value) const {
    json object;
    std::ifstream{description()} >> object;
    object[key] = value;
    std::ofstream{description()} << object;
  }

  TemporaryFolder folder_;
};

TEST_F(BadCheckpoint, ResumeNeedsAFolder) {
  expect_refused(2, {"train", "--net", "lenet", "--batch", "8", "--resume"},
                 {"--resume requires --checkpoint"});
  expect_refused(2, {"train", "--net", "lenet", "--batch", "8", "--checkpoint-every", "3"},
                 {"--checkpoint-every requires --checkpoint"});
}

TEST_F(BadCheckpoint, MissingOrEmptyFolderHasNoCheckpoint) {
  expect_refused(1, resumed(), {"there is no checkpoint in " + path(), "without --resume"});
  EXPECT_FALSE(fs::exists(path()));
  fs::create_directory(path());
  expect_refused(1, resumed(), {"there is no checkpoint in " + path(), "without --resume"});
  EXPECT_TRUE(fs::is_empty(path()));
}

TEST_F(BadCheckpoint, IsNotOverwrittenByATrainingThatDoesNotResume) {
  make_checkpoint();
  const std::string before = content(description()) + content(tensors()) + content(plan());

  expect_refused(1, training(), {path(), "--resume"});
  expect_refused(1, training("4"), {path(), "--resume"});

  EXPECT_EQ(content(description()) + content(tensors()) + content(plan()), before);
  EXPECT_EQ(std::distance(fs::directory_iterator{path()}, fs::directory_iterator{}), 3);
}

TEST_F(BadCheckpoint, OfAnotherTrainingIsRefused) {
  make_checkpoint();
  expect_refused(1, joined(training("4"), {"--resume"}), {"batch is 8", "training's is 4"});
  expect_refused(1, joined(training("8", "2"), {"--resume"}), {"seed is 1", "training's is 2"});
  expect_refused(1, joined(resumed(), {"--classes", "7"}), {"network is 'lenet", "7 classes"});
  expect_refused(1, joined(resumed(), {"--image-size", "32"}), {"network is 'lenet", "1x32x32"});
  expect_refused(1,
                 {"train", "--net", "resnet18", "--batch", "8", "--image-size", "32", "--resume",
                  "--checkpoint", path()},
                 {"network is 'lenet", "'resnet18"});
}

TEST_F(BadCheckpoint, WithADamagedDescriptionIsRefused) {
  make_checkpoint();
  tamper("tensors", "../elsewhere");
  expect_refused(1, resumed(), {"checkpoint.json: tensors", "no file name"});
  tamper("tensors", "step-3.safetensors");
  expect_refused(1, resumed(), {"step-3.safetensors"});
  tamper("step", "two");
  expect_refused(1, resumed(), {"checkpoint.json: step", "whole number"});
  std::ofstream{description()} << "{\"format\"";
  expect_refused(1, resumed(), {"checkpoint.json: not JSON"});
  std::ofstream{description()} << "{}";
  expect_refused(1, resumed(), {"checkpoint.json: format is missing"});
}

TEST_F(BadCheckpoint, WithTensorsCutShortIsRefused) {
  make_checkpoint();
  const auto whole = fs::file_size(tensors());
  for (const auto size : {whole - 1, whole / 2, std::uintmax_t{100}, std::uintmax_t{3}}) {
    fs::resize_file(tensors(), size);
    expect_refused(1, resumed(), {"step-2.safetensors"});
  }
}

TEST_F(BadCheckpoint, WithoutItsPlanIsRefused) {
  make_checkpoint();
  fs::remove(path() + "/plan.json");
  expect_refused(1, resumed(), {"plan.json"});
}

TEST_F(BadCheckpoint, RefusalLeavesItAsItWas) {
  make_checkpoint();
  expect_refused(1, joined(training("4"), {"--resume"}), {"batch"});

  const Outcome longer = run_spillway({"train", "--net", "lenet", "--batch", "8", "--steps", "4",
                                       "--checkpoint", path(), "--resume", "--json", "-"});

  EXPECT_EQ(summary_of(longer).value("steps_run", 0), 2);
}

}  // namespace
}  // namespace spillway
