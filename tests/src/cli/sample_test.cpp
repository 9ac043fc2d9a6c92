// spillway sample: texts from a checkpoint, and errors.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/io/text/text_files.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

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
