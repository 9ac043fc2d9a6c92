// Checkpoints that are kept from earlier: each can be read, and goes on with the same bits.

#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/src/cli/golden/checkpoints.h"
#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

json table() { return json::parse(std::ifstream{SPILLWAY_GOLDEN_FILES "/checkpoints.json"}); }

// Returns the names of all, of a slow build of one in five.
std::vector<std::string> names() {
  const json trainings = table().at("trainings");
  std::vector<std::string> some;
  std::size_t place = 0;
  for (const auto& [name, training] : trainings.items()) {
    if (place++ % (SPILLWAY_SLOW_BUILD != 0 ? 5 : 1) == 0) some.push_back(name);
  }
  return some;
}

// Returns the environment in which oneDNN uses no more than `instructions`.
Arguments with_instructions(std::string instructions) {
  for (char& letter : instructions) letter = static_cast<char>(std::toupper(letter));
  return {"ONEDNN_MAX_CPU_ISA=" + instructions, "SPILLWAY_MEASURING_TIME=0.1",
          "OMP_WAIT_POLICY=PASSIVE"};
}

// Returns the processor's family and model, such as "26 2". oneDNN divides its work by the sizes of
// caches, which differ between models.
std::string processor() {
  std::ifstream file{"/proc/cpuinfo"};
  std::string found;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::string name = line.substr(0, line.find_first_of("\t:"));
    if (name != "cpu family" && name != "model") continue;
    found += (found.empty() ? "" : " ") + line.substr(line.find(": ") + 2);
  }
  return found;
}

// Returns what a checkpoint of `folder` needs to be given again, with all paths from the root.
Arguments given_again(const json& training) {
  const std::string root = golden_checkpoints() + "/";
  Arguments words;
  for (std::string& word : Arguments{training.at("again").get<std::string>().c_str()}) {
    const std::size_t kind = word.starts_with("./") ? 0 : word.find(':') + 1;  // as in idx:FOLDER
    const bool has_path = word.starts_with("./") || kind > 0;
    if (has_path && std::filesystem::exists(root + word.substr(kind))) {
      word.insert(kind, root);
    }
    words.push_back(word);
  }
  return words;
}

class OldCheckpoint : public testing::TestWithParam<std::string> {
 protected:
  const json table_ = table();
  const json training_ = table_.at("trainings").at(GetParam());
  const std::string checkpoint_ = golden_checkpoints() + "/" + GetParam();
};

TEST_P(OldCheckpoint, Verifies) {
  const json found = json_of({"checkpoint verify", checkpoint_, "--json -"});
  ASSERT_FALSE(found.at("manifests").empty());
  for (const json& manifest : found.at("manifests")) {
    EXPECT_TRUE(manifest.at("verified")) << manifest;
  }
}

TEST_P(OldCheckpoint, GoesOnWithTheSameBits) {
  const std::string instructions = training_.at("instructions");
  const Arguments environment = with_instructions(instructions);
  const json host = json::parse(succeed("devices --json -", environment).output).at(0);
  const std::string backend = host.at("backend");
  const std::string wanted = table_.at("library").get<std::string>() + ", " + instructions + ",";
  if (!backend.starts_with(wanted)) {
    GTEST_SKIP() << "the plan is for " << wanted << " and here is " << backend;
  }
  const TemporaryFolder folder;
  std::filesystem::copy(checkpoint_, folder.file("run"));
  const auto steps = training_.at("steps").get<int>() + table_.at("more_steps").get<int>();

  const json summary =
      summary_of(run_spillway({"train", given_again(training_), "--resume --json - --checkpoint",
                               folder.file("run"), "--steps", std::to_string(steps)},
                              environment));

  EXPECT_EQ(summary.value("steps_run", 0), table_.at("more_steps"));
  EXPECT_EQ(summary.value("steps", 0), steps);
  // The same bits come from the same compiler's optimisations and the same kind of processor.
  if (SPILLWAY_SAME_BITS && processor() == table_.at("processor")) {
    EXPECT_EQ(summary.value("weights_sha256", ""), training_.at("weights_sha256"));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, OldCheckpoint, testing::ValuesIn(names()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace spillway::test
