// Trainings that go on from the weights of another: a new head, averages, recipes, what comes out.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

class FineTuning : public testing::Test {
 protected:
  static std::string golden(const std::string& name) {
    return std::string{SPILLWAY_GOLDEN_FILES} + "/weights/" + name;
  }
  // Of a network with torchvision's names, and five classes there.
  static Arguments training(const Arguments& more) {
    return {"train --batch 4 --threads 1 --device host --net", golden("thin-resnet.net"), more};
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }
  static json manifest(const std::string& folder) {
    return json::parse(std::ifstream{folder + "/checkpoint.json"});
  }
  static json digest(const std::string& folder, const std::string& tensor) {
    return manifest(folder).at("tensors").at("sha256_of_each").at(tensor);
  }
  static json evaluation(const std::string& folder, const Arguments& more = {}) {
    json result = json_of({"evaluate", folder, "--threads 1 --device host --json -", more});
    return {result.at("loss"), result.at("accuracy")};
  }

  const Arguments golden_weights_{"--weights", golden("thin-resnet.safetensors")};
  TemporaryFolder folder_;
};

TEST_F(FineTuning, DrawsAHeadOfAnotherSizeAnewAndKeepsTheRest) {
  const Arguments other = "--classes 3 --steps 0 --seed 5";
  expect_refused(kFailure, training({other, golden_weights_}), {"fc.weight", "give --classes 5"});
  const Outcome tuned =
      succeed(training({other, golden_weights_, "--new-head --checkpoint", file("tuned")}));
  expect_parts(tuned.errors, {"layer fc is drawn anew: the file has none for 3 classes"});
  succeed(training({other, "--checkpoint", file("drawn")}));
  succeed(training({"--steps 0", golden_weights_, "--checkpoint", file("whole")}));
  EXPECT_EQ(digest(file("tuned"), "fc.weight"), digest(file("drawn"), "fc.weight"));
  EXPECT_EQ(digest(file("tuned"), "layer4.0.conv2.weight"),
            digest(file("whole"), "layer4.0.conv2.weight"));
  EXPECT_NE(digest(file("tuned"), "conv1.weight"), digest(file("drawn"), "conv1.weight"));
}

// One of the same size is that of the file.
TEST_F(FineTuning, TakesAHeadThatFits) {
  const Outcome same =
      succeed(training({"--steps 0 --new-head", golden_weights_, "--checkpoint", file("same")}));
  EXPECT_EQ(same.errors.find("drawn anew"), std::string::npos);
  succeed(training({"--steps 0", golden_weights_, "--checkpoint", file("whole")}));
  EXPECT_EQ(digest(file("same"), "fc.weight"), digest(file("whole"), "fc.weight"));
  expect_refused(kBadUsage, training("--steps 0 --new-head"), {"--new-head", "needs --weights"});
}

// What evaluate judges is what export writes: the averages, or with --raw-weights the weights.
TEST_F(FineTuning, ExportsWhatItEvaluates) {
  succeed(training({"--steps 4 --lr 0.1 --ema 0.9 --eval-every 0 --checkpoint", file("run")}));
  const json averages = evaluation(file("run"));
  const json weights = evaluation(file("run"), "--raw-weights");
  EXPECT_NE(averages, weights);
  const auto exported = [&](const std::string& name, const Arguments& more) {
    const json written = json_of(
        {"export", file("run"), "--to torchvision --json -", more, file(name + ".safetensors")});
    EXPECT_EQ(written.at("averaged"), more.empty());
    succeed(
        training({"--steps 0 --checkpoint", file(name), "--weights", file(name + ".safetensors")}));
    return evaluation(file(name));
  };
  EXPECT_EQ(exported("averages", {}), averages);
  EXPECT_EQ(exported("weights", "--raw-weights"), weights);
}

TEST_F(FineTuning, ExportsTrainingsOfAnyOptimizerAndTheBestOne) {
  for (const std::string flags :
       {"--optimizer rmsprop --momentum 0.5", "--optimizer adamw --ema 0.5"}) {
    const std::string folder = file("of " + flags);
    succeed(training({"--steps 2 --eval-every 1 --checkpoint-every 1 --keep-best --lr 0",
                      Arguments{flags.c_str()}, "--checkpoint", folder}));
    const Arguments to_file{"export", folder, "--to torchvision --json -", file("w.safetensors")};
    EXPECT_EQ(json_of(to_file).at("step"), 2);
    EXPECT_EQ(json_of({to_file, "--best"}).at("step"), manifest(folder).at("best").at("step"));
  }
}

// Its --new-head and its weights are of the beginning.
TEST_F(FineTuning, GoesOnByTheRecipeThatItBeganWith) {
  std::ofstream{file("recipe.json")} << json{{"net", golden("thin-resnet.net")},
                                             {"batch", 4},
                                             {"classes", 3},
                                             {"new-head", true},
                                             {"weights", golden("thin-resnet.safetensors")},
                                             {"ema", 0.5},
                                             {"eval-every", 0},
                                             {"threads", 1},
                                             {"device", "host"}};
  const auto run = [&](const Arguments& more) {
    return summary_of(run_spillway({"train --json - --recipe", file("recipe.json"), more}))
        .value("weights_sha256", "none");
  };
  const std::string whole = run("--steps 4");
  EXPECT_NE(run({"--steps 2 --checkpoint", file("halves")}), whole);
  EXPECT_EQ(run({"--steps 4 --resume --checkpoint", file("halves")}), whole);
  const Arguments shipped{"train --recipe fine-tune --warmup-steps 0 --eval-every 0 --net",
                          golden("thin-resnet.net"), "--checkpoint", file("shipped")};
  succeed({shipped, golden_weights_, "--steps 1"});
  succeed({shipped, "--resume --steps 2"});
}

// Weights that are numbers still, but make none of any image.
TEST_F(FineTuning, SaysThatAnEvaluationDiverged) {
  const std::string sentence = "warning: the loss of the evaluation is not a number";
  const Outcome outcome = run_spillway(training(
      {"--steps 1 --eval-every 1 --lr 1e20 --keep-best --json - --checkpoint", file("run")}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  expect_parts(outcome.errors, {sentence, "try a smaller --lr"});
  EXPECT_TRUE(summary_of(outcome).at("test_loss").is_null());
  EXPECT_EQ(summary_of(outcome).at("test_top5"), 0.0);
  EXPECT_FALSE(manifest(file("run")).contains("best"));
  const Outcome judged = succeed({"evaluate", file("run"), "--json -"});
  expect_parts(judged.errors, {sentence});
  EXPECT_TRUE(json::parse(judged.output).at("loss").is_null());
}

TEST_F(FineTuning, BeginsWithZeroGammaWhereAsked) {
  succeed(training({"--steps 0 --zero-gamma --checkpoint", file("zero")}));
  EXPECT_EQ(digest(file("zero"), "layer1.0.bn2.weight"), digest(file("zero"), "layer1.0.bn2.bias"));
  EXPECT_NE(digest(file("zero"), "layer1.0.bn1.weight"), digest(file("zero"), "layer1.0.bn1.bias"));
  expect_refused(kFailure, small_training("--zero-gamma"), {"network lenet", "--zero-gamma"});
  expect_refused(kBadUsage, training({"--zero-gamma", golden_weights_}), {"--zero-gamma"});
}

}  // namespace
}  // namespace spillway::test
