// Valid files that differ from those which libraries write today.
// Weights that are exported and imported have the same bits.
#include "src/io/weights/weight_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/refusal.h"
#include "tests/src/io/weights/reading_weights.h"
#include "tests/src/io/weights/weight_networks.h"
#include "tests/src/network_in_memory.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

TEST_F(ReadingWeights, TellsWhoseNamesTheyAre) {
  EXPECT_EQ((WeightFile{weight_golden("gpt.safetensors"), gpt_}.description()),
            "Hugging Face's GPT-2");
  const NamedNetwork vit = named(weight_network("vit"));
  EXPECT_EQ((WeightFile{weight_golden("vit.safetensors"), vit}.description()),
            "Hugging Face's ViT");
  EXPECT_EQ((WeightFile{weight_golden("vit-torchvision.safetensors"), vit}.description()),
            "torchvision's ViT");
}

// (16, 48) in the file, (48, 16) in the network.
TEST_F(ReadingWeights, TurnsTheWeightsOfConv1D) {
  const auto numbers = values(file_.bytes(), gpt_, "h.1.attn.c_attn.weight");
  const std::string& bytes = file_["transformer.h.1.attn.c_attn.weight"].bytes;
  std::vector<float> there(16 * 48);
  std::memcpy(there.data(), bytes.data(), bytes.size());
  EXPECT_EQ(numbers[3 * 16 + 5], there[5 * 48 + 3]);
  EXPECT_EQ(numbers[47 * 16 + 15], there[15 * 48 + 47]);
}

TEST_F(ReadingWeights, NeedsNoPrefix) {
  const auto wanted = values(file_.bytes(), gpt_, "ln_f.bias");
  for (auto& tensor : file_.tensors) tensor.name = tensor.name.substr(12);
  EXPECT_EQ(values(file_.bytes(), gpt_, "ln_f.bias"), wanted);
}

// bert-base-uncased spells norms like this; files of older programs have masks and positions.
TEST_F(ReadingWeights, KnowsOlderSpellingsAndPassesOverWhatHasNoPlace) {
  FileOfTensors bert = golden("bert");
  const NamedNetwork network = named(weight_network("bert"));
  const std::string array = "bert.encoder.layer.1.output.LayerNorm.weight";
  const auto wanted = values(bert.bytes(), network, array);
  for (auto& tensor : bert.tensors) {
    if (tensor.name.ends_with("LayerNorm.weight")) {
      tensor.name.replace(tensor.name.size() - 6, 6, "gamma");
    } else if (tensor.name.ends_with("LayerNorm.bias")) {
      tensor.name.replace(tensor.name.size() - 4, 4, "beta");
    }
  }
  bert.add("bert.embeddings.position_ids", "I64", {1, 1}, std::string(8, '\0'));
  bert.add("bert.pooler.dense.bias");
  bert.add("cls.seq_relationship.weight");
  EXPECT_EQ(values(bert.bytes(), network, array), wanted);

  file_.add("transformer.h.0.attn.bias", "BOOL", {1}, "\1");
  EXPECT_EQ(said_of(file_), "accepted");
}

// The names of a ViT's layers in a state_dict() of transformers 5.
TEST_F(ReadingWeights, KnowsNewerSpellings) {
  FileOfTensors vit = golden("vit");
  const NamedNetwork network = named(weight_network("vit"));
  const std::vector<std::pair<std::string, std::string>> respelt{
      {"encoder.layer.", "layers."},
      {"attention.attention.query", "attention.q_proj"},
      {"attention.attention.key", "attention.k_proj"},
      {"attention.attention.value", "attention.v_proj"},
      {"attention.output.dense", "attention.o_proj"},
      {"intermediate.dense", "mlp.fc1"},
      {"output.dense", "mlp.fc2"}};
  const std::string array = "vit.encoder.layer.1.attention.attention.qkv.weight";
  const auto wanted = values(vit.bytes(), network, array);
  for (auto& tensor : vit.tensors) {
    for (const auto& [classic, now] : respelt) {
      const auto at = tensor.name.find(classic);
      if (at != std::string::npos) tensor.name.replace(at, classic.size(), now);
    }
  }
  EXPECT_EQ(values(vit.bytes(), network, array), wanted);
}

TEST_F(ReadingWeights, TakesATiedTableWhereverItIs) {
  const NamedNetwork llama = named(weight_network("llama"));
  FileOfTensors tied = golden("llama-tied");
  EXPECT_EQ(values(tied.bytes(), llama, "lm_head.weight"),
            values(tied.bytes(), llama, "model.embed_tokens.weight"));

  const FileOfTensors::Tensor table = file_["transformer.wte.weight"];
  file_.add("lm_head.weight", table.type, table.shape, table.bytes);
  EXPECT_EQ(said_of(file_), "accepted");
  file_.tensors.back().bytes.replace(0, 4, std::string(4, '\1'));
  EXPECT_EQ(said_of(file_),
            "tensors 'lm_head.weight' and 'transformer.wte.weight' of FILE differ, but network gpt "
            "has one for both");
}

constexpr std::size_t kBatch = 2;

struct RoundTrip {
  std::string network;
  WeightSource source;
};

// gtest requires this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const RoundTrip& c, std::ostream* out) { *out << c.network; }

NetworkInMemory in_memory(const std::string& name) {
  return {
      weight_network(name), {.batch = kBatch, .optimizer = AdamOptions{}}, MemoryMode::kResident};
}

// Trains a step: statistics, biases and the optimizer state are no longer the initial ones.
void train_a_step(NetworkInMemory& net) {
  net.session().state().initialise(1);
  const Batch batch = drawn_batch(net.network(), kBatch, 0);
  net.session().train({.seed = 1, .step = 0, .learning_rate = 0.01F, .batch = &batch});
}

class RoundTrips : public testing::TestWithParam<RoundTrip> {
 protected:
  void export_from(const State& state) const {
    state.save(folder_.file("checkpoint"));
    export_weights(SafetensorsReader{folder_.file("checkpoint")}, GetParam().network,
                   {.source = GetParam().source}, file());
  }
  [[nodiscard]] std::string file() const { return folder_.file("weights.safetensors"); }

 private:
  TemporaryFolder folder_;
};

TEST_P(RoundTrips, KeepEveryBit) {
  NetworkInMemory first = in_memory(GetParam().network);
  train_a_step(first);
  export_from(first.session().state());
  NetworkInMemory second = in_memory(GetParam().network);
  train_a_step(second);  // its optimizer state must be dropped

  const WeightFile weights{file(), named(second.network())};
  second.session().state().start_from(
      [&](const std::string& name, std::span<float> tensor) { weights.read(name, tensor); });

  EXPECT_EQ(second.session().state().sha256(), first.session().state().sha256());
  for (const BlockNumbers& block : numbers_of(second.session().state(), second.training_step())) {
    if (block.name.find(".exp_avg") == std::string::npos) continue;
    EXPECT_EQ(block.values, std::vector<float>(block.values.size())) << block.name;
  }
}

INSTANTIATE_TEST_SUITE_P(OfEachNetwork, RoundTrips,
                         testing::Values(RoundTrip{"gpt", WeightSource::kHuggingFace},
                                         RoundTrip{"llama", WeightSource::kHuggingFace},
                                         RoundTrip{"bert", WeightSource::kHuggingFace},
                                         RoundTrip{"vit", WeightSource::kHuggingFace},
                                         RoundTrip{"vit", WeightSource::kTorchvision},
                                         RoundTrip{"thin-resnet", WeightSource::kTorchvision}),
                         [](const auto& given) {
                           const bool is_hf = given.param.source == WeightSource::kHuggingFace;
                           const std::string name = given.param.network;
                           return name.substr(0, name.find('-')) + (is_hf ? "_hf" : "_torchvision");
                         });

std::string export_refusal(const std::vector<StoredTensor>& tensors, WeightSource source) {
  const TemporaryFolder folder;
  SafetensorsWriter writer{folder.file("checkpoint"), tensors};
  for (const StoredTensor& tensor : tensors) {
    writer.append(std::vector<float>(element_count(tensor.shape)));
  }
  writer.commit();
  const SafetensorsReader checkpoint{folder.file("checkpoint")};
  std::string sentence = refusal(
      [&] { return export_weights(checkpoint, "mine", {.source = source}, folder.file("out")); });
  EXPECT_FALSE(std::filesystem::exists(folder.file("out")));
  return sentence;
}

// VGG on images of 32x32, which it pools to one pixel.
TEST(Export, IsRefusedWhereTheNetworkIsAnotherThere) {
  EXPECT_EQ(export_refusal({{"conv1_1.weight", {4, 3, 3, 3}}, {"fc6.weight", {4, 4}}},
                           WeightSource::kTorchvision),
            "network mine differs from torchvision's VGG: the first linear layer there reads 7x7 "
            "pixels; train with --image-size 224");
}

}  // namespace
}  // namespace spillway::test
