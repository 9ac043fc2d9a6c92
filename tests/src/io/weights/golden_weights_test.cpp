// Files written by Hugging Face's and torchvision's own programs: their names, and the network's
// output for a batch with their weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "src/io/weights/name_table.h"
#include "src/io/weights/tensor_places.h"
#include "tests/golden/drawn_numbers.h"
#include "tests/src/io/weights/weight_networks.h"
#include "tests/src/network_in_memory.h"

namespace spillway::test {
namespace {

nlohmann::json golden_weights() {
  std::ifstream text{weight_golden("weights.json")};
  return nlohmann::json::parse(text);
}

Batch golden_batch(const nets::Network& network, const std::string& name, std::size_t size) {
  const std::size_t count = size * network.input().elements();
  Batch batch;
  if (network.input().form == nets::Form::kTokens) {
    const auto tokens = draw_labels(name + " images", count, network.classes());
    batch.images.assign(tokens.begin(), tokens.end());
  } else {
    const auto pixels = draw(name + " images", count);
    batch.images.assign(pixels.begin(), pixels.end());
  }
  const auto [height, width] = network.labels();
  const auto labels = draw_labels(name + " labels", size * height * width, network.classes());
  batch.labels.assign(labels.begin(), labels.end());
  return batch;
}

class GoldenWeights : public testing::TestWithParam<std::string> {};

TEST_P(GoldenWeights, GiveTheLossOfTheirLibrary) {
  const nlohmann::json golden = golden_weights();
  const std::size_t size = golden.at("batch");
  NetworkInMemory net{weight_network(GetParam()), {.batch = size}, MemoryMode::kResident};
  const WeightFile file{weight_golden(GetParam() + ".safetensors"), named(net.network())};
  net.session().state().start_from(
      [&](const std::string& name, std::span<float> tensor) { file.read(name, tensor); });
  const Batch batch = golden_batch(net.network(), GetParam(), size);

  const StepReport report = net.session().evaluate({.batch = &batch});

  const double loss = static_cast<double>(report.loss) / static_cast<double>(batch.labels.size());
  EXPECT_NEAR(loss / golden.at("losses").at(GetParam()).get<double>(), 1, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(OfEachLibrary, GoldenWeights,
                         testing::Values("gpt", "llama", "llama-tied", "bert", "vit",
                                         "vit-torchvision", "thin-resnet"),
                         [](const auto& given) {
                           std::string name = given.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

std::map<std::string, std::string> shapes_of(const NamedTensors& tensors) {
  std::map<std::string, std::string> shapes;
  for (const TensorPlace& place : tensors.places) {
    std::string text;
    for (const std::size_t extent : place.shape) {
      text += (text.empty() ? "" : "x") + std::to_string(extent);
    }
    shapes[place.name] = text;
  }
  return shapes;
}

// The names include the auxiliary heads of GoogLeNet and Inception.
TEST(NamesOfLargeNetworks, AreThoseOfTheirLibraries) {
  const nlohmann::json names = golden_weights().at("names");
  ASSERT_EQ(names.size(), 11U);
  for (const auto& [name, wanted] : names.items()) {
    const bool has_heads = nets::find_network(name).build_with_heads != nullptr;
    const NamedNetwork network = named(nets::build_network(name, {.auxiliary_heads = has_heads}));
    const std::vector<NamedTensors> all = named_tensors(network.arrays);
    const std::map<std::string, std::string> shapes = wanted;
    EXPECT_EQ(std::ranges::count(all, shapes, shapes_of), 1) << name;
    const std::size_t libraries = name == "vit-b16" ? 2 : 1;
    EXPECT_EQ(all.size(), libraries) << name;
  }
}

TEST(NamesOfLargeNetworks, OfOtherNetworksThereAreNone) {
  for (const char* const name : {"lenet", "alexnet", "overfeat", "inception-v4", "fcn8s"}) {
    EXPECT_TRUE(named_tensors(named(nets::build_network(name)).arrays).empty()) << name;
  }
}

using Parts = std::vector<std::string>;

TEST(NamePattern, FindsWhatStandsForItsWildcards) {
  EXPECT_EQ(match_name("h.#.ln_#.*", "h.10.ln_2.weight"), (Parts{"10", "2", "weight"}));
  EXPECT_EQ(match_name("wte.weight", "wte.weight"), Parts{});
  EXPECT_EQ(match_name("*.#", "a.b.3"), (Parts{"a.b", "3"}));
}

TEST(NamePattern, IsNotThatOfOtherNames) {
  for (const char* const name : {"h.x.ln_1.weight", "h..ln_1.weight", "h.1.ln_1.", "h.1.ln_1", "",
                                 "transformer.h.1.ln_1.weight", "h.1a.ln_1.weight"}) {
    EXPECT_EQ(match_name("h.#.ln_#.*", name), std::nullopt) << name;
  }
  EXPECT_EQ(match_name("wte", "wte2"), std::nullopt);
  EXPECT_EQ(match_name("*", std::string(257, 'a')), std::nullopt);
}

TEST(NamePattern, IsFilledInOrder) {
  EXPECT_EQ(fill_name("layer.#.*", Parts{"3", "bias", "unused"}), "layer.3.bias");
}

TEST(NamePattern, HasANameForEachWordOfItsList) {
  EXPECT_EQ(each_word_of("a.{q,key}_proj.*"), (Parts{"a.q_proj.*", "a.key_proj.*"}));
  EXPECT_EQ(each_word_of("a.*"), Parts{"a.*"});
}

TEST(Transposed, RowsAreColumns) {
  const std::vector<float> from{1, 2, 3, 4, 5, 6};  // (2, 3)
  std::vector<float> to(6);
  transpose(from, 3, to);
  EXPECT_EQ(to, (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

}  // namespace
}  // namespace spillway::test
