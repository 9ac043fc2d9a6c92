// Files that are not weights, or belong to another network.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/src/io/weights/reading_weights.h"
#include "tests/src/io/weights/weight_networks.h"

namespace spillway::test {
namespace {

constexpr const char* kCannot = "cannot read FILE as a safetensors file: ";

TEST_F(ReadingWeights, RefusesWhatIsNoSafetensorsFile) {
  const std::string whole = file_.bytes();
  const std::vector<std::pair<std::string, std::string>> all{
      {"", "it is empty"},
      {"abc", "it has fewer than 8 bytes"},
      {"a text that is no file of weights", "its header claims"},
      {whole.substr(0, 100), "its header claims"},
      {whole.substr(0, whole.size() - 1), "its tensors need"},
      {whole + "x", "its tensors need"},
      {file_.with_header(file_.header().dump(), 1), "its "},
      {file_.with_header("{}", 1ULL << 40U), "its header claims 1099511627778 bytes"},
      {file_.with_header("{}", ~0ULL - 7), "its header claims"},
      {file_.with_header("[1, 2]"), "its header is no JSON object"},
      {file_.with_header("not JSON"), "its header is no JSON object"},
      {file_.with_header(std::string(100, '[')), "its header "},
      {std::string{"PK\3\4"} + whole, "it was written by torch.save(); convert it with"},
      {"\x80\x02}q" + whole, "it was written by torch.save(); convert it with"},
      {R"({"metadata": {}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors"}})",
       "it is JSON, as the index of a model in several files is; give the folder of that model"},
      {"version https://git-lfs.github.com/spec/v1\n", "it is a pointer of Git LFS"}};
  for (const auto& [bytes, reason] : all) {
    const std::string sentence = said_of(bytes);
    EXPECT_EQ(sentence.rfind(kCannot + reason, 0), 0U) << sentence;
  }
}

TEST_F(ReadingWeights, RefusesWhatCannotBeOpened) {
  EXPECT_EQ(refusal([&] {
              return WeightFile{folder_.file("missing"), gpt_};
            }),
            "cannot read " + folder_.file("missing") + ": No such file or directory");
  EXPECT_EQ(refusal([&] {
              return WeightFile{folder_.path(), gpt_};
            }),
            "there is neither model.safetensors nor model.safetensors.index.json in " +
                folder_.path().string() + "; download the model's safetensors files into it");
}

// A valid file with one changed entry in its header.
class BadEntry : public ReadingWeights {
 protected:
  [[nodiscard]] std::string said_with(const std::string& key, const nlohmann::json& value) {
    nlohmann::json header = file_.header();
    header["transformer.ln_f.bias"][key] = value;
    return said_of(file_.with_header(header.dump()));
  }
};

TEST_F(BadEntry, IsRefusedWithItsTensorsName) {
  const std::string tensor = std::string{kCannot} + "tensor 'transformer.ln_f.bias' ";
  EXPECT_EQ(said_with("dtype", "F17"), tensor + "has the unknown dtype F17");
  EXPECT_EQ(said_with("dtype", 32), tensor + "has no dtype");
  EXPECT_EQ(said_with("dtype", "F16"),
            std::string{kCannot} +
                "the bytes of tensor 'transformer.ln_f.bias' do not match its "
                "shape");
  EXPECT_EQ(said_with("shape", {4}),
            std::string{kCannot} +
                "the bytes of tensor 'transformer.ln_f.bias' do not match its "
                "shape");
  EXPECT_EQ(said_with("shape", {-16}), tensor + "has no list of whole numbers as its shape");
  EXPECT_EQ(said_with("data_offsets", {64, 0}),
            tensor + "has no begin and end as its data_offsets");
  EXPECT_EQ(said_with("data_offsets", {0, 64}).rfind(kCannot, 0), 0U);  // overlaps another
  EXPECT_EQ(said_with("data_offsets", {1'000'000, 1'000'064}).rfind(kCannot, 0), 0U);
}

TEST_F(BadEntry, IsRefusedWhereItsNameComesTwice) {
  const std::string entry = R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(said_of(file_.with_header("{" + entry + "," + entry + "}")),
            std::string{kCannot} + "its header has the name 'a' twice");
}

// ---- weights of another network

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

TEST_F(ReadingWeights, RefusesAnotherKindOfNetwork) {
  EXPECT_EQ(said_of(golden("llama").bytes()),
            "FILE is of Hugging Face's Llama, but network gpt has the names of Hugging Face's "
            "GPT-2");
  EXPECT_EQ(said_of(golden("vit-torchvision").bytes()),
            "FILE is of torchvision's ViT, but network gpt has the names of Hugging Face's GPT-2");
  FileOfTensors other;
  EXPECT_EQ(said_of(other), "FILE has no tensors");
  other.add("tok_embeddings.weight");
  EXPECT_EQ(
      said_of(other),
      "FILE has no tensor 'transformer.h.0.attn.c_attn.weight', by which Hugging Face's GPT-2 "
      "is known, which network gpt has the names of; its first is 'tok_embeddings.weight'");
}

TEST_F(ReadingWeights, RefusesANetworkThatNoLibraryHas) {
  EXPECT_EQ(
      said_of(file_.bytes(), named(nets::build_network("lenet"))),
      std::string{"network lenet has no names in files of other libraries; "} + kNetworksWithNames);
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
