// Weight files with the names of other libraries: train --weights and export.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;

class WeightsOfFiles : public testing::Test {
 protected:
  // A network of 2 layers, 2 heads, 16 numbers a token and 12 tokens.
  static Arguments training(const std::string& steps, const Arguments& more = {},
                            const std::string& vocabulary = "23") {
    return {"train --net gpt:2,2,16,12 --batch 4 --data synthetic --vocabulary", vocabulary,
            "--steps", steps, more};
  }
  [[nodiscard]] std::string folder() const { return files_.file("run"); }
  [[nodiscard]] std::string file() const { return files_.file("model.safetensors"); }
  [[nodiscard]] Arguments to_hf() const { return {"export", folder(), "--to hf", file()}; }

  void train_and_export() const {
    succeed(training("2", {"--checkpoint", folder()}));
    succeed(to_hf());
  }
  static std::string content_of(const std::string& path) {
    std::ifstream stream{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream{path, std::ios::binary} << bytes;
  }
  static std::string weights_of(const nlohmann::json& summary) {
    return summary.value("weights_sha256", "none");
  }

  TemporaryFolder files_;
};

TEST_F(WeightsOfFiles, AreThoseOfTheTrainingThatWroteThem) {
  const auto trained = summary_of(training("2", {"--json - --checkpoint", folder()}));
  const auto written = json_of({to_hf(), "--json -"});
  EXPECT_EQ(written.at("network"), "gpt:2,2,16,12");
  EXPECT_EQ(written.at("step"), 2);
  EXPECT_EQ(written.at("tensors"), 28);
  EXPECT_EQ(written.at("bytes"), fs::file_size(file()));

  for (const std::string& given : {file(), files_.path().string()}) {
    const Outcome again = succeed(training("0", {"--json - --seed 7 --weights", given}));

    EXPECT_EQ(weights_of(summary_of(again)), weights_of(trained));
    expect_parts(again.errors, {"weights of " + given + ": Hugging Face's GPT-2"});
  }
}

TEST_F(WeightsOfFiles, AreWhereATrainingStartsFromThatResumes) {
  train_and_export();
  const std::string second = files_.file("second");
  const Arguments flags{"--checkpoint", second};
  succeed(training("1", {"--weights", file(), flags}));
  const auto whole = summary_of(training("3", {"--json - --weights", file()}));

  const auto resumed = summary_of(training("3", {"--json - --resume", flags}));

  EXPECT_EQ(resumed.value("steps_run", 0), 2);
  EXPECT_EQ(weights_of(resumed), weights_of(whole));

  const Arguments third{"--checkpoint", files_.file("third"), "--resume auto --weights", file()};
  succeed(training("1", third));
  const auto restarted = summary_of(training("3", {"--json -", third}));
  EXPECT_EQ(restarted.value("steps_run", 0), 2);
  EXPECT_EQ(weights_of(restarted), weights_of(whole));
}

// The step is the same with any budget and memory.
TEST_F(WeightsOfFiles, AreTheSameWithinABudget) {
  train_and_export();
  const auto resident = summary_of(training("2", {"--memory resident --json - --weights", file()}));
  const auto within =
      summary_of(training("2", {"--budget min --state far --json - --weights", file()}));
  EXPECT_EQ(weights_of(within), weights_of(resident));
}

class Exporting : public WeightsOfFiles {};

TEST_F(Exporting, ReplacesAFileAsAWholeAndFollowsALink) {
  write(files_.file("target"), "old");
  fs::create_symlink(files_.file("target"), file());
  train_and_export();
  EXPECT_TRUE(fs::is_symlink(file()));
  EXPECT_EQ(summary_of(training("0", {"--json - --weights", files_.file("target")})).size(),
            summary_of(training("0", {"--json -"})).size());
  EXPECT_EQ(std::distance(fs::directory_iterator{files_.path()}, fs::directory_iterator{}), 3);
}

}  // namespace
}  // namespace spillway::test
