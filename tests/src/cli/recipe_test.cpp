// Flags of files.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using nlohmann::json;
using test::Arguments;
using test::expect_refused;
using test::run_spillway;

class Recipes : public testing::Test {
 protected:
  [[nodiscard]] std::string recipe(const std::string& text) const {
    const std::string path = folder_.file("recipe.json");
    std::ofstream{path} << text;
    return path;
  }
  test::TemporaryFolder folder_;
};

TEST_F(Recipes, GiveFlagsThatTheCommandLineDoesNot) {
  const std::string file = recipe(
      R"({"description": "small", "net": "lenet", "batch": 8, "steps": 2, "eval-every": 0,
          "lr": 0.25, "nesterov": true, "schedule": "multistep", "milestones": [1, 2],
          "label-smoothing": 0.1})");
  const json summary =
      summary_of(run_spillway({"train --recipe", file, "--steps=1 --lr 0.5 --json -"}));
  EXPECT_EQ(summary.value("steps", 0), 1);
  EXPECT_EQ(summary.value("learning_rate", json{}).dump(), "0.5");
  EXPECT_EQ(summary.value("optimizer", json{}).value("nesterov", false), true);
  EXPECT_EQ(summary.value("schedule", json{}).value("milestones", json{}).dump(), "[1,2]");
  EXPECT_EQ(summary.value("label_smoothing", json{}).dump(), "0.1");
}

TEST_F(Recipes, MaySayWhetherToGoOn) {
  json content{{"net", "lenet"}, {"batch", 8}, {"steps", 2}};
  for (const bool is_auto : {true, false}) {
    content["resume"] = is_auto ? json("auto") : json(false);
    content["checkpoint"] = folder_.file(is_auto ? "one" : "other");
    const Arguments training{"train --recipe", recipe(content.dump()), "--json -"};
    EXPECT_EQ(summary_of(run_spillway(training)).value("steps_run", 0), 2);
    EXPECT_EQ(run_spillway(training).exit_code, is_auto ? 0 : test::kFailure);
  }
}

TEST_F(Recipes, RefuseWhatTrainHasNot) {
  const auto refused = [&](const std::string& text, const std::vector<std::string>& words) {
    expect_refused(test::kFailure, {"train --recipe", recipe(text)}, words);
  };
  refused(R"({"optimiser": "sgd"})", {"no option 'optimiser'", "did you mean 'optimizer'?"});
  refused(R"({"nesterov": 1})", {"'nesterov' is true or false"});
  refused(R"({"lr": {}})", {"'lr' is a number, a text, or a list"});
  refused(R"({"net": "lenet\u0000.net"})", {"'net' has a zero byte"});
  refused("[]", {"no JSON object"});
  refused("{", {"recipe.json"});
  expect_refused(test::kFailure, "train --recipe fashion-mnits", {"did you mean 'fashion-mnist'?"});
  expect_refused(test::kBadUsage,
                 {"train --recipe", recipe(R"({"net": "lenet", "batch": 8, "lr": "much"})")},
                 {"--lr"});
}

// A recipe that comes with the program; its epochs are cut short.
TEST_F(Recipes, ComeWithTheProgram) {
  const json summary = summary_of(
      run_spillway({"train --recipe fashion-mnist --net lenet --batch 8 --steps 1 --warmup-steps 0 "
                    "--zero-gamma=false --json -"}));
  EXPECT_EQ(summary.value("schedule", json{}).value("name", ""), "cosine");
}

}  // namespace
}  // namespace spillway
