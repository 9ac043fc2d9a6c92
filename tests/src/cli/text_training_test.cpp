// Trainings of networks of texts: reports, and texts that are refused before the start.
// Trainings that begin with the weights of another: a new head, averages, recipes, exports.
// Flags of files.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/src/io/text/text_files.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

class TextTraining : public testing::Test {
 protected:
  TextTraining() {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "the quick brown fox, " + std::to_string(i) + "; ";
    write("a.txt", text);
  }

  void write(const std::string& name, const std::string& text) const {
    folder_.write(name, {text.begin(), text.end()});
  }
  [[nodiscard]] Arguments training(const Arguments& more) const {
    return {"train --net gpt:1,2,16,32 --vocabulary 257 --batch 4 --steps 3 --data",
            "text:" + folder_.file("a.txt"), more};
  }

  TemporaryFolder folder_;
};

TEST_F(TextTraining, ReportsPerplexityAndTokens) {
  const Outcome outcome =
      succeed({"train --net gpt:1,2,16,32 --vocabulary 257 --batch 4 --epochs 1", "--json - --data",
               "text:" + folder_.file("a.txt")});
  const std::vector<json> lines = json_lines(outcome);
  const json& evaluation = lines.at(lines.size() - 2).at("evaluation");
  EXPECT_NEAR(evaluation.at("perplexity"), std::exp(evaluation.at("test_loss").get<double>()),
              1e-9);
  const json& summary = lines.back().at("summary");
  EXPECT_EQ(summary.at("perplexity"), evaluation.at("perplexity"));
  EXPECT_EQ(summary.at("image"), "32 tokens");
  EXPECT_EQ(summary.at("classes"), 257);
  EXPECT_EQ(summary.at("data"), "bytes of " + folder_.file("a.txt"));
  EXPECT_NEAR(summary.at("tokens_per_second").get<double>(),
              32 * summary.at("images_per_second").get<double>(), 1e-3);
  expect_parts(outcome.errors, {"perplexity", "tokens/s"});
}

TEST_F(TextTraining, OfImagesReportsNeither) {
  const json line = summary_of(succeed(small_training("--json -")));
  EXPECT_FALSE(line.contains("perplexity"));
  EXPECT_FALSE(line.contains("tokens_per_second"));
}

TEST_F(TextTraining, HasTheTokensOfEachTextThatAreAskedFor) {
  const json line = summary_of(succeed(training("--sequence-length 8 --json -")));
  EXPECT_EQ(line.at("image"), "8 tokens");
}

TEST_F(TextTraining, GoesOnAsIfItHadNotStopped) {
  const auto hash = [&](const Arguments& more) {
    return summary_of(succeed(training({"--json -", more}))).at("weights_sha256");
  };
  const json whole = hash("");
  const std::string checkpoint = folder_.file("checkpoint");
  static_cast<void>(
      succeed({"train --net gpt:1,2,16,32 --vocabulary 257 --batch 4 --steps 2 --data",
               "text:" + folder_.file("a.txt"), "--checkpoint", checkpoint}));
  EXPECT_EQ(hash({"--resume --checkpoint", checkpoint}), whole);
}

TEST(NetsOfTexts, HaveTokensAndAVocabulary) {
  const json net =
      json_of("nets gpt:1,2,16,32 --sequence-length 8 --vocabulary 99 --json -").front();
  EXPECT_EQ(net.at("image"), "8 tokens");
  EXPECT_EQ(net.at("classes"), 99);
}

class FineTuning : public testing::Test {
 protected:
  static std::string golden(const std::string& name) {
    return std::string{SPILLWAY_GOLDEN_FILES} + "/weights/" + name;
  }
  // A training of a network with torchvision's names, which has five classes there.
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

// A head of the right size comes from the file.
TEST_F(FineTuning, TakesAHeadThatFits) {
  const Outcome same =
      succeed(training({"--steps 0 --new-head", golden_weights_, "--checkpoint", file("same")}));
  EXPECT_EQ(same.errors.find("drawn anew"), std::string::npos);
  succeed(training({"--steps 0", golden_weights_, "--checkpoint", file("whole")}));
  EXPECT_EQ(digest(file("same"), "fc.weight"), digest(file("whole"), "fc.weight"));
}

// evaluate and export use the same numbers: averages, or weights with --raw-weights.
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

// --new-head and weights apply only at the beginning.
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

// The weights are still finite, but their outputs are not.
TEST_F(FineTuning, SaysThatAnEvaluationDiverged) {
  const std::string sentence = "warning: the loss of the evaluation is not a number";
  const Outcome outcome = run_spillway(
      training({"--classes 6 --steps 1 --eval-every 1 --lr 1e20 --keep-best --json - --checkpoint",
                file("run")}));
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
}

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

// A built-in recipe, with fewer steps.
TEST_F(Recipes, ComeWithTheProgram) {
  const json summary = summary_of(
      run_spillway({"train --recipe fashion-mnist --net lenet --batch 8 --steps 1 --warmup-steps 0 "
                    "--zero-gamma=false --json -"}));
  EXPECT_EQ(summary.value("schedule", json{}).value("name", ""), "cosine");
}

// spillway sample: texts from a checkpoint, and errors.

class Sample : public testing::Test {
 protected:
  Sample() {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "the quick brown fox, " + std::to_string(i) + "; ";
    folder_.write("a.txt", {text.begin(), text.end()});
  }

  // Trains a network and returns its checkpoint, the folder `name`.
  [[nodiscard]] std::string trained(const std::string& name, const Arguments& net) const {
    std::string path = folder_.file(name);
    static_cast<void>(succeed({"train --batch 4 --steps 3 --checkpoint", path, net}));
    return path;
  }
  [[nodiscard]] std::string text() const { return "text:" + folder_.file("a.txt"); }
  [[nodiscard]] std::string of_bytes() const {
    return trained("bytes", {"--net gpt:1,2,16,32 --vocabulary 256 --data", text()});
  }

  TemporaryFolder folder_;
};

TEST_F(Sample, PrintsThePromptAndWhatFollowsIt) {
  const std::string path = of_bytes();
  const Outcome outcome =
      succeed({"sample", path, "--prompt", std::string{"the q"}, "--tokens 40"});
  EXPECT_EQ(outcome.output.substr(0, 5), "the q");
  EXPECT_EQ(outcome.output.size(), 5U + 40U + 1U);
  EXPECT_EQ(outcome.output.back(), '\n');
  expect_parts(outcome.errors, {"gpt:1,2,16,32 of step 3", "32 tokens at most", "40 tokens in"});
}

TEST_F(Sample, GivesTheSameTextForTheSameSeed) {
  const std::string path = of_bytes();
  const auto sampled = [&](const Arguments& more) {
    return succeed({"sample", path, "--tokens 50", more}).output;
  };
  const std::string first = sampled("--seed 5");
  EXPECT_EQ(sampled("--seed 5"), first);
  EXPECT_NE(sampled("--seed 6"), first);
  EXPECT_EQ(sampled("--seed 5 --temperature 0"), sampled("--seed 6 --top-k 1"));
}

TEST_F(Sample, WritesItsTextAsJson) {
  const std::string path = of_bytes();
  const Arguments sampling{"sample", path, "--prompt", "x", "--tokens 30 --seed 5 --top-k 9"};
  const json written = json_of({sampling, "--json -"});
  EXPECT_EQ(written.at("prompt"), "x");
  EXPECT_EQ(written.at("step"), 3);
  EXPECT_EQ(written.at("top_k"), 9);
  EXPECT_EQ(written.at("tokens").size(), 30U);
  const Outcome outcome = succeed({sampling, "--json", folder_.file("out.json")});
  for (std::size_t i = 0; i < 30; ++i) {
    const auto byte = static_cast<unsigned char>(outcome.output.at(1 + i));
    EXPECT_EQ(written.at("tokens").at(i), int{byte});
  }
}

// Trains the same weights with and without averages; the averages are close to the initial weights.
TEST_F(Sample, UsesTheAveragesUnlessRawWeightsAreWanted) {
  const Arguments net{"--net gpt:1,2,16,32 --vocabulary 256 --optimizer sgd --lr 0.5 --data",
                      text()};
  const std::string plain = trained("plain", net);
  const std::string averaged = trained("averaged", {net, "--ema 0.99"});
  const auto sampled = [](const std::string& path, const Arguments& more) {
    return json_of({"sample", path, "--tokens 60 --seed 5 --json -", more});
  };
  const json of_averages = sampled(averaged, {});
  const json of_weights = sampled(averaged, "--raw-weights");
  EXPECT_EQ(of_weights.at("tokens"), sampled(plain, {}).at("tokens"));
  EXPECT_NE(of_averages.at("tokens"), of_weights.at("tokens"));
  EXPECT_EQ(of_averages.at("averaged"), true);
  EXPECT_EQ(of_weights.at("averaged"), false);
  EXPECT_EQ(sampled(plain, {}).at("averaged"), false);
}

TEST_F(Sample, TakesTheTokenizerOfTheTraining) {
  SmallVocabulary{}.write_to(folder_);
  const std::string here = folder_.path().string();
  const std::string path = trained(
      "pairs", {"--net llama:1,2,1,16,24,32 --vocabulary 300 --data", text(), "--tokenizer", here});
  const json made = json_of({"sample", path, "--tokenizer", here, "--prompt the --json -"});
  for (const json& token : made.at("tokens")) EXPECT_LT(token, 258);
}

TEST_F(Sample, NeedsNoNetworkFileAnyMore) {
  const std::string text_of_file =
      "spillway-network 1\nname tiny\ninput 16 tokens\nclasses 257\n"
      "table embedding vocabulary=classes features=16\nplaces position-embedding\n"
      "qkv linear features=48\nheads attention heads=2 causal=yes\n"
      "loss vocabulary-loss heads table vocabulary=classes\n";
  folder_.write("tiny.net", {text_of_file.begin(), text_of_file.end()});
  const std::string file = folder_.file("tiny.net");
  const std::string path = trained("tiny", {"--net", file, "--data", text()});
  std::filesystem::remove(file);
  EXPECT_EQ(succeed({"sample", path, "--tokens 40"}).output.size(), 41U);
}

}  // namespace
}  // namespace spillway::test
