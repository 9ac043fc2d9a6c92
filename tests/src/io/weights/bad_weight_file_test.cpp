// Weights of another network. tests/src/cli/golden/refusals.txt has files that are no weights.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/src/io/weights/reading_weights.h"
#include "tests/src/io/weights/weight_networks.h"

namespace spillway::test {
namespace {

TEST_F(ReadingWeights, RefusesAMissingTensor) {
  file_.erase("transformer.h.1.ln_2.bias");
  EXPECT_EQ(said_of(file_),
            "FILE has no tensor 'transformer.h.1.ln_2.bias', which network gpt needs");
}

TEST_F(ReadingWeights, RefusesOneOfSeveralFiles) {
  file_.erase("transformer.h.1.ln_2.bias");
  const std::string part = folder_.file("model-00001-of-00002.safetensors");
  std::ofstream{part, std::ios::binary} << file_.bytes();
  EXPECT_EQ(refusal([&] {
              return WeightFile{part, gpt_};
            }),
            part +
                " has no tensor 'transformer.h.1.ln_2.bias', which network gpt needs; it is one "
                "of several files of a model; give their folder");
}

TEST_F(ReadingWeights, RefusesATensorThatTheNetworkLacks) {
  file_.add("transformer.h.2.ln_1.weight");
  EXPECT_EQ(said_of(file_),
            "FILE has a tensor 'transformer.h.2.ln_1.weight', which network gpt does not have");
}

TEST_F(ReadingWeights, RefusesTwoNamesOfOneTensor) {
  FileOfTensors bert = golden("bert");
  bert.add("bert.embeddings.LayerNorm.gamma");
  EXPECT_EQ(said_of(bert.bytes(), named(weight_network("bert"))),
            "tensors 'bert.embeddings.LayerNorm.weight' and 'bert.embeddings.LayerNorm.gamma' of "
            "FILE are the same one's names");
}

TEST_F(ReadingWeights, RefusesOtherShapes) {
  file_["transformer.h.0.ln_1.bias"].shape = {4, 4};
  EXPECT_EQ(said_of(file_),
            "tensor 'transformer.h.0.ln_1.bias' of FILE is (4, 4), but network gpt has (16) there");
  file_ = golden("gpt");
  file_["transformer.h.0.mlp.c_fc.weight"].shape = {64, 16};
  EXPECT_EQ(
      said_of(file_),
      "tensor 'transformer.h.0.mlp.c_fc.weight' of FILE is (64, 16), but network gpt has (16, "
      "64) there");
}

TEST_F(ReadingWeights, SaysWhichFlagGivesTheSizesOfTheFile) {
  const nets::Network words =
      nets::gpt("g", {.layers = 2, .heads = 2, .width = 16, .context = 12}, nets::tokens(10), 30);
  EXPECT_EQ(
      said_of(file_.bytes(), named(words)),
      "tensor 'transformer.wte.weight' of FILE is (23, 16), but network g has (30, 16) there; "
      "give --vocabulary 23");
  const nets::Network context =
      nets::gpt("g", {.layers = 2, .heads = 2, .width = 16, .context = 99}, nets::tokens(10), 23);
  EXPECT_EQ(
      said_of(file_.bytes(), named(context)),
      "tensor 'transformer.wpe.weight' of FILE is (12, 16), but network g has (99, 16) there; "
      "the file's context is of 12 tokens");
  const nets::Network classes =
      nets::vit("v", {.layers = 2, .heads = 2, .width = 16, .patch = 4}, {3, 12, 12}, 7);
  EXPECT_EQ(said_of(golden("vit").bytes(), named(classes)),
            "tensor 'classifier.weight' of FILE is (5, 16), but network v has (7, 16) there; give "
            "--classes 5, or --new-head to draw it anew");
}

// ---- numbers

TEST_F(ReadingWeights, RefusesNumbersOfOtherTypes) {
  auto& tensor = file_["transformer.ln_f.bias"];
  tensor.type = "F64";
  tensor.bytes += tensor.bytes;
  EXPECT_EQ(said_of(file_),
            "tensor 'transformer.ln_f.bias' of FILE holds F64, and only F32, F16 and BF16 can be "
            "read");
}

TEST_F(ReadingWeights, RefusesNumbersThatAreNotFinite) {
  for (const char* const bytes : {"\x01\x01\xc0\x7f", "\xff\xff\xff\xff"}) {
    file_["transformer.ln_f.bias"].bytes.replace(8, 4, std::string(bytes, 4));
    EXPECT_EQ(said_of(file_),
              "tensor 'transformer.ln_f.bias' of FILE holds a number that is not finite");
  }
  FileOfTensors half = golden("bert");
  half["cls.predictions.bias"].bytes.replace(0, 2, std::string("\x00\x7c", 2));  // infinity
  EXPECT_EQ(said_of(half.bytes(), named(weight_network("bert"))),
            "tensor 'cls.predictions.bias' of FILE holds a number that is not finite");
}

}  // namespace
}  // namespace spillway::test
