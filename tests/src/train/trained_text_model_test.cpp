// What a checkpoint must hold for its network to be sampled from.

#include "src/train/trained_text_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "nets/families/published_networks.h"
#include "nets/text/network_file.h"
#include "tests/src/io/text/text_files.h"
#include "tests/src/train/checkpoint_fixture.h"

namespace spillway::test {
namespace {

KeptTextModel tiny_model(const std::string& byte_pairs = {}) {
  const nets::Network network =
      nets::gpt("tiny", {.layers = 1, .heads = 2, .width = 16, .context = 8}, nets::tokens(8), 200);
  return {.network = nets::to_text(network), .byte_pairs = byte_pairs};
}

class TrainedModel : public CheckpointFixture {
 protected:
  void save_of(const KeptTextModel& model, const std::string& data = "text:book.txt") {
    Checkpoint checkpoint = at_step(1);
    checkpoint.key.data = data;
    checkpoint.text_model = model;
    checkpoints.save(checkpoint, state);
  }
  void expect_refused(const std::string& words, const std::string& tokenizer = {}) const {
    const std::string sentence = refusal([&] { return open_text_model(folder.path(), tokenizer); });
    EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
    EXPECT_NE(sentence.find(folder.path().string()), std::string::npos) << sentence;
  }
};

TEST_F(TrainedModel, HasTheNetworkAndTheTokensOfItsCheckpoint) {
  save_of(tiny_model());
  const TrainedTextModel model = open_text_model(folder.path(), "");
  EXPECT_EQ(model.network.name, "tiny");
  EXPECT_EQ(model.network.image, nets::tokens(8));
  EXPECT_EQ(model.network.classes, 200U);
  EXPECT_EQ(model.codec->size(), 256U);
  EXPECT_EQ(model.checkpoint.manifest.checkpoint.text_model, tiny_model());
}

TEST_F(TrainedModel, IsNoneOfImages) {
  save(1);
  expect_refused("reads images");
}

TEST_F(TrainedModel, IsNoneOfACheckpointWithoutItsNetwork) {
  save(1);
  tamper("network", "gpt2 256 tokens, 50257 classes");
  expect_refused("train --resume");
}

TEST_F(TrainedModel, IsNoneWhereTheNetworkCannotBeRead) {
  save_of({.network = "spillway-network 1\nname tiny\ninput 8 tokens\nclasses 9\nx nonsense\n"});
  expect_refused(":5: ");
  tamper("text_model", {{"network_file", "text"}});
  expect_refused("network_file");
}

TEST_F(TrainedModel, HasATokenizerThatFits) {
  SmallVocabulary{}.write_to(folder);
  const std::string here = folder.path().string();
  save_of(tiny_model(), "tokens:book.bin");
  expect_refused("tokens:book.bin");
  expect_refused("has 258 tokens", here);
}

TEST_F(TrainedModel, RefusesWeightsOfAnother) {
  save_of(tiny_model());
  const TrainedTextModel model = open_text_model(folder.path(), "");
  const nets::Network network = nets::build_network(model.network);
  State other{make_sampling_step(network, backend, {}), prefetch::kSmallestPage, backend,
              device.memory()};
  const std::string sentence = refusal([&] {
    load_weights(model, other);
    return 0;
  });
  EXPECT_NE(sentence.find("has no tensor"), std::string::npos) << sentence;
}

}  // namespace
}  // namespace spillway::test
