// Checkpoints that are missing, belong to another training, or are damaged.

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
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

  [[nodiscard]] Arguments training() const {
    return {"train --net lenet --batch 8 --seed 1 --steps 2 --checkpoint", path()};
  }
  [[nodiscard]] Arguments resumed() const { return {training(), "--resume"}; }

  void make_checkpoint() const {
    const Outcome outcome = run_spillway(training());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    ASSERT_TRUE(fs::exists(description()));
    ASSERT_TRUE(fs::exists(tensors()));
  }

  TemporaryFolder folder_;
};

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
}

TEST_F(BadCheckpoint, OfAnotherRunningTrainingIsRefused) {
  Program program{{"train --net lenet --batch 8 --epochs 1000000 --json - --checkpoint", path()}};
  program.wait_for_lines(1);
  expect_refused(1, training(), {"the folder " + path() + " is in use by process ", " since "});
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish().exit_code, 128 + SIGTERM);
}

}  // namespace
}  // namespace spillway
