#include "src/io/weights/weight_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/io/weights/model_files.h"
#include "tests/refusal.h"
#include "tests/src/io/weights/weight_networks.h"
#include "tests/src/network_in_memory.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

// Returns the bytes of a file.
std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// A safetensors file that may be invalid in any way.
struct FileOfTensors {
  struct Tensor {
    std::string name;
    std::string type;
    std::vector<std::size_t> shape;
    std::string bytes;
  };
  std::vector<Tensor> tensors;

  // Parses the bytes of a valid file.
  [[nodiscard]] static FileOfTensors of(const std::string& file) {
    std::uint64_t length = 0;
    for (unsigned i = 0; i < 8; ++i) {
      length |= std::uint64_t{static_cast<unsigned char>(file.at(i))} << (8 * i);
    }
    FileOfTensors result;
    const auto header = nlohmann::json::parse(file.substr(8, length));
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const std::size_t begin = entry.at("data_offsets").at(0);
      const std::size_t end = entry.at("data_offsets").at(1);
      result.tensors.push_back({.name = name,
                                .type = entry.at("dtype"),
                                .shape = entry.at("shape"),
                                .bytes = file.substr(8 + length + begin, end - begin)});
    }
    return result;
  }

  [[nodiscard]] Tensor& operator[](const std::string& name) {
    for (Tensor& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::out_of_range{name};
  }
  // Adds a tensor, by default without numbers.
  void add(const std::string& name, const std::string& type = "F32",
           const std::vector<std::size_t>& shape = {0}, const std::string& bytes = "") {
    tensors.push_back({.name = name, .type = type, .shape = shape, .bytes = bytes});
  }
  void erase(const std::string& name) {
    std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
  }

  [[nodiscard]] std::string bytes() const {
    nlohmann::json header = nlohmann::json::object();
    std::string numbers;
    for (const Tensor& tensor : tensors) {
      header[tensor.name] = {
          {"dtype", tensor.type},
          {"shape", tensor.shape},
          {"data_offsets", {numbers.size(), numbers.size() + tensor.bytes.size()}}};
      numbers += tensor.bytes;
    }
    const std::string text = header.dump();
    std::string file;
    for (unsigned i = 0; i < 8; ++i) file += static_cast<char>(text.size() >> (8 * i) & 0xFFU);
    return file + text + numbers;
  }
};

// Reads modified golden files.
class ReadingWeights : public testing::Test {
 protected:
  [[nodiscard]] static FileOfTensors golden(const std::string& name) {
    return FileOfTensors::of(bytes_of(weight_golden(name + ".safetensors")));
  }
  [[nodiscard]] std::string path() const { return folder_.file("w.safetensors"); }

  // The error for a file of these bytes, with "FILE" in place of its path.
  [[nodiscard]] std::string said_of(const std::string& bytes, const NamedNetwork& network) const {
    std::ofstream{path(), std::ios::binary} << bytes;
    std::string sentence = refusal([&] { return WeightFile{path(), network}; });
    for (auto at = sentence.find(path()); at != std::string::npos; at = sentence.find(path())) {
      sentence.replace(at, path().size(), "FILE");
    }
    return sentence;
  }
  [[nodiscard]] std::string said_of(const std::string& bytes) const { return said_of(bytes, gpt_); }
  [[nodiscard]] std::string said_of(const FileOfTensors& file) const {
    return said_of(file.bytes());
  }
  [[nodiscard]] std::vector<float> values(const std::string& bytes, const NamedNetwork& network,
                                          const std::string& array) const {
    EXPECT_EQ(said_of(bytes, network), "accepted");
    const WeightFile file{path(), network};
    const auto found = std::ranges::find(network.arrays, array, &StoredTensor::name);
    std::vector<float> numbers(element_count(found->shape));
    file.read(array, numbers);
    return numbers;
  }

  TemporaryFolder folder_;
  NamedNetwork gpt_ = named(weight_network("gpt"));
  FileOfTensors file_ = golden("gpt");
};

// Valid files that differ from those which libraries write today.
// Weights that are exported and imported have the same bits.

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

// Weights of another network. tests/src/cli/golden/refusals.txt has files that are no weights.

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

// Models of several files with an index, and folders of them like Hugging Face's.

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kOne = "model-00001-of-00002.safetensors";
constexpr const char* kTwo = "model-00002-of-00002.safetensors";

// A golden file of GPT-2 in two parts, with every other tensor in the second.
class ModelInFiles : public ReadingWeights {
 protected:
  ModelInFiles() {
    fs::create_directory(model_);
    for (std::size_t i = 0; i < file_.tensors.size(); ++i) {
      FileOfTensors& part = i % 2 == 0 ? one_ : two_;
      part.tensors.push_back(file_.tensors[i]);
      map_[file_.tensors[i].name] = i % 2 == 0 ? kOne : kTwo;
    }
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream{model_ / name, std::ios::binary} << bytes;
  }
  void write_parts() const {
    write(kOne, one_.bytes());
    write(kTwo, two_.bytes());
    write(kIndex, json{{"metadata", {{"total_size", 1}}}, {"weight_map", map_}}.dump());
  }
  // The error, with "MODEL" in place of the folder.
  [[nodiscard]] std::string said_of_folder() const {
    std::string sentence = refusal([&] { return WeightFile{model_, gpt_}; });
    const std::string folder = model_.string();
    for (auto at = sentence.find(folder); at != std::string::npos; at = sentence.find(folder)) {
      sentence.replace(at, folder.size(), "MODEL");
    }
    return sentence;
  }
  [[nodiscard]] std::string said_with_parts() const {
    write_parts();
    return said_of_folder();
  }
  // The error if the index maps `tensor` to `value`.
  [[nodiscard]] std::string said_with_place(const std::string& tensor, const json& value) {
    map_[tensor] = value;
    return said_with_parts();
  }

  fs::path model_ = folder_.path() / "model";
  FileOfTensors one_;
  FileOfTensors two_;
  json map_ = json::object();
};

TEST_F(ModelInFiles, HasTheNumbersOfTheOneThatItWas) {
  std::ofstream{path(), std::ios::binary} << file_.bytes();
  const WeightFile whole{path(), gpt_};
  write_parts();
  for (const fs::path& given : {model_, model_ / kIndex}) {
    const WeightFile parts{given, gpt_};
    for (const StoredTensor& array : gpt_.arrays) {
      std::vector<float> numbers(element_count(array.shape));
      std::vector<float> same(numbers.size());
      whole.read(array.name, numbers);
      parts.read(array.name, same);
      EXPECT_EQ(same, numbers) << array.name;
    }
  }
}

TEST_F(ModelInFiles, IsTheOneFileOfItsFolderWhereThatHasBoth) {
  write(kIndex, "{}");
  write("model.safetensors", file_.bytes());
  EXPECT_EQ(said_of_folder(), "accepted");
}

// Hugging Face's cache has links to files with other names.
TEST_F(ModelInFiles, MayBeLinks) {
  write_parts();
  fs::rename(model_ / kTwo, folder_.path() / "blob");
  fs::create_symlink("../blob", model_ / kTwo);
  EXPECT_EQ(said_of_folder(), "accepted");
}

TEST_F(ModelInFiles, IsWhatTheIndexSays) {
  const std::string name = one_.tensors.front().name;
  EXPECT_EQ(said_with_place(name, kTwo), "MODEL/model.safetensors.index.json says that tensor '" +
                                             name + "' is in " + kTwo +
                                             ", which does not have it; download the model again");
  EXPECT_EQ(said_with_place(name, kOne), "accepted");
  EXPECT_EQ(said_with_place("more", kOne),
            "MODEL/model.safetensors.index.json says that tensor 'more' is in " +
                std::string{kOne} + ", which does not have it; download the model again");
  map_.erase("more");
  two_.tensors.push_back(one_.tensors.front());
  EXPECT_EQ(said_with_parts(),
            "tensor '" + name +
                "' is in two files that MODEL/model.safetensors.index.json lists, " + kOne +
                " and " + kTwo + "; download the model again");
}

}  // namespace
}  // namespace spillway::test
