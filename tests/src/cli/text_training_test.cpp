// Trainings of networks of texts: what they report, and texts that are refused before they start.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"
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

TEST_F(TextTraining, KnowsItsTextAgain) {
  const std::string checkpoint = folder_.file("checkpoint");
  static_cast<void>(succeed(training({"--checkpoint", checkpoint})));
  write("a.txt", std::string(2000, 'x'));
  expect_refused(1, training({"--resume --checkpoint", checkpoint}), {"data"});
}

TEST_F(TextTraining, RefusesFlagsOfImages) {
  expect_refused(1, training("--image-size 8"), {"reads text", "--sequence-length"});
  expect_refused(1, training("--classes 8"), {"reads text", "--vocabulary"});
  expect_refused(1, small_training("--sequence-length 8"), {"reads images", "--image-size"});
  expect_refused(1, small_training("--vocabulary 8"), {"reads images", "--classes"});
  expect_refused(1, training("--sequence-length 33"), {"32 positions", "--sequence-length"});
}

TEST_F(TextTraining, RefusesDataOfAnotherKind) {
  expect_refused(1, small_training("--data text:/x"), {"learns from images", "idx:DIR"});
  expect_refused(1, small_training("--data tokens:/x"), {"learns from images", "idx:DIR"});
  expect_refused(1, {"train --net gpt:1,2,16,32 --batch 4 --steps 1 --data idx:/x"},
                 {"learns from text", "tokens:FILE"});
}

TEST_F(TextTraining, RefusesABrokenTextBeforeItStarts) {
  expect_refused(1, training({"--tokenizer", folder_.path().string()}),
                 {"no tokenizer", "encoder.json", "merges.txt"});
  write("a.txt", "");
  expect_refused(1, training(""), {"a.txt is empty"});
  write("a.txt", std::string(65, 'x'));
  expect_refused(1, training(""), {"65 tokens", "needs 66", "--sequence-length"});
  write("a.txt", std::string(120, 'x'));
  expect_refused(1, training(""), {"2 windows", "batch of 4", "--batch"});
}

TEST(NetsOfTexts, HaveTokensAndAVocabulary) {
  const json net =
      json_of("nets gpt:1,2,16,32 --sequence-length 8 --vocabulary 99 --json -").front();
  EXPECT_EQ(net.at("image"), "8 tokens");
  EXPECT_EQ(net.at("classes"), 99);
  expect_refused(1, "nets gpt:1,2,16,32 --classes 8", {"reads text", "--vocabulary"});
  expect_refused(1, "nets lenet --sequence-length 8", {"reads images", "--image-size"});
}

}  // namespace
}  // namespace spillway::test
