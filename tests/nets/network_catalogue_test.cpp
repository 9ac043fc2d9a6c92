#include "nets/families/network_catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>

#include "nets/families/published_networks.h"
#include "nets/network.h"
#include "tests/refusal.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

// Returns the layer `name`. Throws: std::out_of_range when it does not exist.
const Node& find(const Network& network, const std::string& name) {
  const auto at = std::ranges::find(network.nodes, name, &Node::name);
  if (at == network.nodes.end()) throw std::out_of_range{name};
  return *at;
}

// Returns the output shape of the layer `name`: "512x22x22".
std::string shape_of(const Network& network, const std::string& name) {
  return to_string(find(network, name).output);
}

// Counts the layers of one kind.
template <typename Kind>
std::ptrdiff_t count(const Network& network) {
  return std::count_if(network.nodes.begin() + 1, network.nodes.end(),
                       [](const Node& node) { return std::holds_alternative<Kind>(node.layer); });
}

constexpr Shape photo(std::size_t side) { return {.channels = 3, .height = side, .width = side}; }

std::string build_refusal(std::string_view name, const NetworkOptions& options) {
  try {
    return "accepted: " + build_network(name, options).name;
  } catch (const um::Error& error) {
    return error.what();
  }
}

// Expected parameter counts:
// * torchvision's models without auxiliary classifiers; Inception-v4's published weights.
// * LeNet-5: the paper with a full second layer. AlexNet: one tower.
// * VGG-101: VGG-13 with 20, 64, 2 and 2 more convolutions from the second stage on, each of 9
//   channels^2 + channels: 133,047,848 + 20 * 147,584 + 64 * 590,080 + 2 * 2 * 2,359,808.
// * FCN: VGG-16's convolutions (14,714,688); 7 * 7 * 512 * 4096 + 4096 and 4096^2 + 4096 for the
//   linear layers; 4097 * 21 for the scores. Then 21^2 * 64^2 for FCN-32s; 21^2 * (4^2 + 4^2 +
//   16^2) and 513 * 21 + 257 * 21 for FCN-8s.
// * Transformers: Hugging Face's models, BERT with its masked-language head.
TEST(Catalogue, NetworksHaveTheParametersOfTheirPapers) {
  const std::map<std::string, std::size_t> expected{{"lenet", 61'706},
                                                    {"alexnet", 62'378'344},
                                                    {"overfeat", 145'920'872},
                                                    {"vgg11", 132'863'336},
                                                    {"vgg13", 133'047'848},
                                                    {"vgg16", 138'357'544},
                                                    {"vgg19", 143'667'240},
                                                    {"vgg101", 183'203'880},
                                                    {"googlenet", 6'624'904},
                                                    {"inception-v3", 23'834'568},
                                                    {"inception-v4", 42'679'816},
                                                    {"resnet18", 11'689'512},
                                                    {"resnet34", 21'797'672},
                                                    {"resnet50", 25'557'032},
                                                    {"resnet101", 44'549'160},
                                                    {"resnet152", 60'192'808},
                                                    {"densenet121", 7'978'856},
                                                    {"densenet161", 28'681'000},
                                                    {"densenet169", 14'149'480},
                                                    {"densenet201", 20'013'928},
                                                    {"squeezenet", 1'235'496},
                                                    {"fcn8s", 134'489'759},
                                                    {"fcn32s", 136'152'917},
                                                    {"vit-b16", 86'567'656},
                                                    {"vit-l16", 304'326'632},
                                                    {"gpt2", 124'439'808},
                                                    {"gpt2-medium", 354'823'168},
                                                    {"gpt2-large", 774'030'080},
                                                    {"gpt2-xl", 1'557'611'200},
                                                    {"bert-base", 109'514'298},
                                                    {"bert-large", 335'174'458}};
  EXPECT_EQ(catalogue().size(), expected.size());
  for (const CatalogueEntry& entry : catalogue()) {
    EXPECT_EQ(count_parameters(build_network(entry.name)), expected.at(std::string{entry.name}))
        << entry.name;
  }
}

// TinyLlama (Zhang et al., 2024).
TEST(Catalogue, LlamasHaveTheParametersOfTheirSizes) {
  EXPECT_EQ(count_parameters(build_network("llama:22,32,4,2048,5632,2048")), 1'100'048'384U);
}

TEST(Catalogue, EveryNetworkKeepsThePromisesOfNetwork) {
  for (const CatalogueEntry& entry : catalogue()) {
    const Network network = build_network(entry.name);
    EXPECT_EQ(network.name, entry.name);
    EXPECT_EQ(network.input(), entry.image);
    EXPECT_EQ(network.classes(), entry.classes);
    EXPECT_EQ(count<SoftmaxCrossEntropy>(network) + count<VocabularyLoss>(network), 1);
    std::set<std::string> names;
    for (std::size_t i = 0; i < network.nodes.size(); ++i) {
      EXPECT_TRUE(names.insert(network.nodes[i].name).second) << network.nodes[i].name;
      EXPECT_EQ(network.nodes[i].inputs.empty(), i == 0);
      for (const NodeId input : network.nodes[i].inputs) {
        EXPECT_LT(static_cast<std::size_t>(input), i);
      }
    }
  }
}

// Output shapes of a network's layers, for its own image or, if `side` is not 0, an image of
// `side`.
struct LayerShapes {
  const char* network;
  std::size_t side;
  const char* shapes;
};

constexpr std::array kShapes{
    LayerShapes{"lenet", 0, "conv1 6x28x28 conv2 16x10x10 pool2 16x5x5"},
    LayerShapes{"vgg16", 0,
                "conv1_2 64x224x224 pool1 64x112x112 pool2 128x56x56 pool3 256x28x28 "
                "pool4 512x14x14 pool5 512x7x7 fc7 4096x1x1"},
    LayerShapes{"vgg16", 32, "pool5 512x1x1"}, LayerShapes{"vgg19", 64, "pool5 512x2x2"},
    // The 3x3 convolution of a bottleneck has the stride.
    LayerShapes{"resnet50", 0,
                "conv1 64x112x112 maxpool 64x56x56 layer1.2.relu 256x56x56 "
                "layer2.0.conv1 128x56x56 layer2.0.conv2 128x28x28 "
                "layer2.0.downsample.0 512x28x28 layer2.3.relu 512x28x28 "
                "layer3.5.relu 1024x14x14 layer4.2.relu 2048x7x7 avgpool 2048x1x1"},
    LayerShapes{"resnet50", 32, "layer1.0.relu 256x8x8 layer4.2.relu 2048x1x1"},
    LayerShapes{"alexnet", 0, "conv1 96x55x55 pool1 96x27x27 pool2 256x13x13 pool5 256x6x6"},
    // The stages of the paper's table 1.
    LayerShapes{"overfeat", 231,
                "conv1 96x56x56 conv2 256x24x24 pool2 256x12x12 conv5 1024x12x12 "
                "pool5 1024x6x6 fc7 4096x1x1"},
    LayerShapes{"googlenet", 0,
                "pool1 64x56x56 pool2 192x28x28 inception3b 480x28x28 inception4e 832x14x14 "
                "inception5b 1024x7x7"},
    LayerShapes{"inception-v3", 0,
                "stem2.pool 192x35x35 mixed3 288x35x35 mixed8 768x17x17 mixed11 2048x8x8"},
    LayerShapes{"inception-v4", 0, "stem4 384x35x35 reduction_a 1024x17x17 c3 1536x8x8"},
    LayerShapes{"densenet121", 0,
                "pool0 64x56x56 denseblock1.denselayer6.concat 256x56x56 "
                "transition3.pool 512x7x7 avgpool 1024x1x1"}};

TEST(Catalogue, NetworksHaveTheShapesOfTheirPapers) {
  for (const auto& [name, side, shapes] : kShapes) {
    const auto image = side == 0 ? std::nullopt : std::optional{photo(side)};
    const Network network = build_network(name, {.image = image});
    std::istringstream words{shapes};
    for (std::string layer, shape; words >> layer >> shape;) {
      EXPECT_EQ(shape_of(network, layer), shape) << name << ": " << layer;
    }
  }
}

TEST(Catalogue, AlexnetAndVggHaveTheLayersOfTheirPapers) {
  const Network alexnet = build_network("alexnet");
  EXPECT_EQ(count<LocalResponseNorm>(alexnet), 2);
  // SuperNeurons counts 23 layers, including the loss.
  EXPECT_EQ(alexnet.nodes.size(), 1U + 23U);
  EXPECT_EQ(count<Dropout>(build_network("vgg19")), 2);
}

TEST(Catalogue, ResnetHasABatchNormBehindEachConvolution) {
  const Network network = build_network("resnet50");
  EXPECT_EQ(count<BatchNorm>(network), count<Convolution>(network));
}

TEST(Catalogue, ResnetAddsTheShortcutBeforeTheLastRelu) {
  const Network network = build_network("resnet18");
  const Node& add = find(network, "layer1.1.add");
  EXPECT_EQ(network[add.inputs[0]].name, "layer1.1.bn2");
  EXPECT_EQ(network[add.inputs[1]].name, "layer1.0.relu");
  EXPECT_EQ(network[find(network, "layer1.1.relu").inputs[0]].name, "layer1.1.add");
}

TEST(Catalogue, DensenetLayersReadAllBeforeThemInTheirBlock) {
  const Network network = build_network("densenet121");
  const Node& third = find(network, "denseblock2.denselayer2.concat");
  ASSERT_EQ(third.inputs.size(), 3U);
  EXPECT_EQ(network[third.inputs[0]].name, "transition1.pool");
  EXPECT_EQ(network[third.inputs[1]].name, "denseblock2.denselayer1.conv2");
  EXPECT_EQ(network[third.inputs[2]].name, "denseblock2.denselayer2.conv2");
}

// Counts convolutions and linear layers. The papers do not count the projections, one in each stage
// that changes the shape.
TEST(Catalogue, DeepNetworksHaveAsManyLayersAsTheirNamesSay) {
  const std::map<std::string, std::ptrdiff_t> layers{
      {"vgg11", 11},          {"vgg13", 13},          {"vgg16", 16},        {"vgg19", 19},
      {"vgg101", 101},        {"resnet18", 18 + 3},   {"resnet34", 34 + 3}, {"resnet50", 50 + 4},
      {"resnet101", 101 + 4}, {"resnet152", 152 + 4}, {"densenet121", 121}, {"densenet161", 161},
      {"densenet169", 169},   {"densenet201", 201}};
  for (const auto& [name, expected] : layers) {
    const Network network = build_network(name);
    EXPECT_EQ(count<Convolution>(network) + count<Linear>(network), expected) << name;
  }
}

TEST(Catalogue, NamesOfFamiliesSayTheirDepths) {
  const Network resnet = build_network("resnet:3,4,6,3");
  EXPECT_EQ(resnet.name, "resnet:3,4,6,3");
  EXPECT_EQ(resnet.nodes.size(), build_network("resnet50").nodes.size());
  EXPECT_EQ(count_parameters(resnet), 25'557'032U);
  EXPECT_EQ(count_parameters(build_network("vgg:2,2,3,3,3")), 138'357'544U);
  EXPECT_EQ(find_network("vgg:2,22,66,4,4").description,
            "VGG, 101 layers (after Simonyan and Zisserman, 2014)");
  // SuperNeurons, table 4: 3 (6 + 32 + 595 + 6) + 2 layers.
  EXPECT_EQ(find_network("resnet:6,32,595,6").description,
            "ResNet with bottlenecks, 1919 layers (after He et al., 2015)");
}

TEST(Catalogue, TakesImagesAsSmallAsTheHeadersSay) {
  const std::map<std::string, std::size_t> sides{
      {"lenet", 12},     {"alexnet", 67},     {"overfeat", 71},     {"vgg11", 32},
      {"googlenet", 31}, {"densenet121", 29}, {"inception-v3", 75}, {"inception-v4", 75}};
  for (const auto& [name, side] : sides) {
    EXPECT_EQ(build_refusal(name, {.image = photo(side)}), "accepted: " + name);
    const std::string sentence = build_refusal(name, {.image = photo(side - 1)});
    EXPECT_TRUE(sentence.starts_with("layer ")) << sentence;
    EXPECT_TRUE(sentence.ends_with("use a larger --image-size")) << sentence;
  }
}

TEST(Catalogue, RefusesASingleClass) {
  EXPECT_EQ(build_refusal("lenet", {.classes = 1}),
            "network lenet needs at least 2 classes to tell apart, not 1");
}

// 500 + 198 padded pixels: 349, 175, 88, 44 and 22 after the poolings, 16 scores, (16 - 1) 32 + 64
// = 544 upsampled. Images of odd size work alike.
TEST(Fcn, ScoresEachPixelOfAnImageOfAnySize) {
  const Network coarse = build_network("fcn32s");
  EXPECT_EQ(shape_of(coarse, "pool5"), "512x22x22");
  EXPECT_EQ(shape_of(coarse, "score_fr"), "21x16x16");
  EXPECT_EQ(shape_of(coarse, "upscore"), "21x544x544");
  EXPECT_EQ(coarse.labels(), square(500));
  EXPECT_EQ(shape_of(build_network("fcn8s"), "fuse_pool3"), "21x70x70");
  for (const Shape& image : {Shape{3, 1, 1}, Shape{3, 33, 58}, Shape{3, 375, 500}}) {
    for (const char* name : {"fcn8s", "fcn32s"}) {
      const Network network = build_network(name, {.image = image, .classes = 4});
      EXPECT_EQ(network.nodes.back().output, (Shape{4, image.height, image.width})) << name;
    }
  }
}

TEST(AuxiliaryHeads, GivesThePapersHeadsOnRequest) {
  const Network googlenet = build_network("googlenet", {.auxiliary_heads = true});
  EXPECT_EQ(count<SoftmaxCrossEntropy>(googlenet), 3);
  EXPECT_EQ(count_parameters(googlenet), 13'004'888U);  // as in torchvision
  EXPECT_EQ(to_string(find(googlenet, "aux1.pool").output), "512x4x4");
  EXPECT_EQ(std::get<SoftmaxCrossEntropy>(find(googlenet, "aux2.loss").layer).weight, 0.3F);
  const Network inception = build_network("inception-v3", {.auxiliary_heads = true});
  EXPECT_EQ(count<SoftmaxCrossEntropy>(inception), 2);
  EXPECT_EQ(count_parameters(inception), 27'161'264U);  // as in torchvision
  EXPECT_EQ(std::get<SoftmaxCrossEntropy>(find(inception, "aux.loss").layer).weight, 0.4F);
  EXPECT_EQ(test::refusal([] { return build_network("vgg16", {.auxiliary_heads = true}); }),
            "network vgg16 has no auxiliary heads; googlenet and inception-v3 have");
}

TEST(AuxiliaryHeads, WithoutTheHeadsANetworkIsTheOneThatNeverHadThem) {
  const Network with = build_network("googlenet", {.auxiliary_heads = true});
  const Network rest = without_auxiliary_heads(with);
  const Network plain = build_network("googlenet");
  ASSERT_EQ(rest.nodes.size(), plain.nodes.size());
  for (std::size_t i = 0; i < rest.nodes.size(); ++i) {
    EXPECT_EQ(rest.nodes[i].name, plain.nodes[i].name);
    EXPECT_EQ(rest.nodes[i].inputs, plain.nodes[i].inputs);
    EXPECT_EQ(rest.nodes[i].output, plain.nodes[i].output);
  }
}

}  // namespace
}  // namespace spillway::nets
