// Checkpoints that are missing, belong to another training, or are damaged.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "src/train/checkpoint/checkpoint.h"
#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using test::Arguments;
using test::expect_refused;
using test::Outcome;
using test::Program;
using test::run_spillway;
using test::TemporaryFolder;

class BadCheckpoint : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.file("checkpoint"); }
  [[nodiscard]] std::string description() const { return path() + "/checkpoint.json"; }
  [[nodiscard]] std::string tensors() const { return path() + "/step-2.safetensors"; }

  [[nodiscard]] Arguments training(const std::string& batch = "8",
                                   const std::string& seed = "1") const {
    return {"train --net lenet --batch", batch, "--seed", seed, "--steps 2 --checkpoint", path()};
  }
  [[nodiscard]] Arguments resumed() const { return {training(), "--resume"}; }

  [[nodiscard]] std::string plan() const { return path() + "/step-2-plan.json"; }

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
  expect_refused(2, "train --net lenet --batch 8 --resume", {"--resume needs --checkpoint"});
  expect_refused(2, "train --net lenet --batch 8 --checkpoint-every 3",
                 {"--checkpoint-every needs --checkpoint"});
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
  EXPECT_EQ(std::distance(fs::directory_iterator{path()}, fs::directory_iterator{}), 4);
}

TEST_F(BadCheckpoint, OfAnotherTrainingIsRefused) {
  make_checkpoint();
  expect_refused(1, {training("4"), "--resume"}, {"batch is 8", "training's is 4"});
  expect_refused(1, {training("8", "2"), "--resume"}, {"seed is 1", "training's is 2"});
  expect_refused(1, {resumed(), "--classes 7"}, {"network is 'lenet", "7 classes"});
  expect_refused(1, {resumed(), "--image-size 32"}, {"network is 'lenet", "1x32x32"});
  expect_refused(1,
                 {"train --net resnet18 --batch 8 --image-size 32 --resume --checkpoint", path()},
                 {"network is 'lenet", "'resnet18"});
}

TEST_F(BadCheckpoint, WithADamagedManifestIsRefused) {
  make_checkpoint();
  fs::remove(path() + "/step-2.json");
  tamper("step", 3);
  expect_refused(1, resumed(), {"checkpoint.json does not match its own digest"});
  std::ofstream{description()} << "{\"format\"";
  expect_refused(1, resumed(), {"checkpoint.json: not JSON"});
  std::ofstream{description()} << "{}";
  expect_refused(1, resumed(), {"checkpoint.json does not match its own digest"});
  std::ofstream{description()} << R"({"format": "spillway-checkpoint", "version": 3})";
  expect_refused(1, resumed(), {"checkpoint.json is of version 3", "no digests", "begin anew"});
}

// A digest does not protect from a user who can write the file.
TEST_F(BadCheckpoint, OfABatchThatNoTrainingHasIsRefused) {
  make_checkpoint();
  const json whole = json::parse(std::ifstream{description()});
  for (const std::uint64_t batch :
       {std::uint64_t{0}, (std::uint64_t{1} << 20U) + 1, std::uint64_t{1} << 63U}) {
    json changed = whole;
    changed["batch"] = batch;
    const std::string text = sealed(changed);
    std::ofstream{description()} << text;
    std::ofstream{path() + "/step-2.json"} << text;
    for (const Arguments& command : {Arguments{"evaluate", path()}, Arguments{"predict", path()},
                                     resumed(), Arguments{"checkpoint verify", path()}}) {
      const Outcome outcome = run_spillway(command);
      EXPECT_EQ(outcome.exit_code, 1);
      EXPECT_EQ(outcome.errors.find("a bug in"), std::string::npos) << outcome.errors;
      test::expect_parts(outcome.errors + outcome.output, {": batch is "});
    }
  }
}

TEST_F(BadCheckpoint, WithOneFlippedBitIsRefused) {
  make_checkpoint();
  std::fstream file{tensors(), std::ios::in | std::ios::out | std::ios::binary};
  file.seekg(-1, std::ios::end);
  const int last = file.get();
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 1));
  file.close();
  expect_refused(1, resumed(),
                 {"step-2.safetensors does not match its digest: tensor '", "no other checkpoint"});
}

TEST_F(BadCheckpoint, IsShownByVerify) {
  make_checkpoint();
  const Outcome whole = run_spillway({"checkpoint verify", path()});
  EXPECT_EQ(whole.exit_code, 0) << whole.errors;
  EXPECT_NE(whole.output.find("checkpoint.json: step 2 verifies, "), std::string::npos);
  fs::resize_file(tensors(), fs::file_size(tensors()) - 1);

  const Outcome outcome =
      run_spillway({"checkpoint verify", path(), "--json", folder_.file("findings.json")});

  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("step-2.json: DOES NOT VERIFY: " + tensors() + " has "),
            std::string::npos)
      << outcome.output;
  EXPECT_EQ(outcome.errors, "spillway: 2 of 2 manifests in " + path() + " do not verify\n");
  json findings;
  std::ifstream{folder_.file("findings.json")} >> findings;
  EXPECT_EQ(findings.at("manifests").at(0).at("verified"), false);
  expect_refused(1, {"checkpoint verify", folder_.file("nowhere")}, {"cannot open the folder"});
  expect_refused(test::kBadUsage, {"checkpoint", path()},
                 {"checkpoint needs a subcommand; did you mean 'spillway checkpoint verify " +
                  path() + "'?\n"});
}

// Opening a named pipe without a writer would block forever.
TEST_F(BadCheckpoint, OfNamedPipesIsRefusedAtOnce) {
  fs::create_directory(path());
  ASSERT_EQ(mkfifo(description().c_str(), 0600), 0);
  expect_refused(1, resumed(), {"cannot read " + description() + ": it is no ordinary file"});
}

TEST_F(BadCheckpoint, OfAnotherRunningTrainingIsRefused) {
  Program program{{"train --net lenet --batch 8 --epochs 1000000 --json - --checkpoint", path()}};
  program.wait_for_lines(1);
  expect_refused(1, training(), {"the folder " + path() + " is in use by process ", " since "});
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish().exit_code, 128 + SIGTERM);
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
  fs::remove(plan());
  expect_refused(1, resumed(), {"step-2-plan.json"});
}

TEST_F(BadCheckpoint, RefusalLeavesItAsItWas) {
  make_checkpoint();
  expect_refused(1, {training("4"), "--resume"}, {"batch"});

  EXPECT_EQ(run_spillway({"checkpoint verify", path()}).exit_code, 0);
  const Outcome longer = run_spillway(
      {"train --net lenet --batch 8 --steps 4 --checkpoint", path(), "--resume --json -"});

  EXPECT_EQ(summary_of(longer).value("steps_run", 0), 2);
}

}  // namespace
}  // namespace spillway
