// Files that are good in other ways than those which libraries write today.

#include "src/io/weights/weight_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/src/weights/reading_weights.h"
#include "tests/src/weights/weight_networks.h"

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

// (16, 48) there, (48, 16) here.
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

// bert-base-uncased spells norms so; files of older programs have masks and positions.
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

// What a state_dict() of transformers 5 calls the layers of a ViT.
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

}  // namespace
}  // namespace spillway::test
