#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "src/io/weights/name_table.h"

namespace spillway {
namespace {

constexpr const char* kOtherClasses = "give --classes {}, or --new-head to draw it anew";
constexpr const char* kCounters = "*.num_batches_tracked";  // counters of batch norms

NameTable resnet_names() {
  return {
      .source = WeightSource::kTorchvision,
      .network = "ResNet",
      .mark = "layer1.0.conv1.weight",
      .rules = {same_name("conv1.weight"), same_name("bn1.*"), same_name("layer#.#.conv#.weight"),
                same_name("layer#.#.bn#.*"), same_name("layer#.#.downsample.0.weight"),
                same_name("layer#.#.downsample.1.*"), same_name("fc.*")},
      .passed_over = {kCounters},
      .hints = {{"fc.weight", 0, kOtherClasses}}};
}

NameTable densenet_names() {
  NameTable table{.source = WeightSource::kTorchvision,
                  .network = "DenseNet",
                  .mark = "denseblock1.denselayer1.conv1.weight",
                  .rules = {same_name("classifier.*")},
                  .passed_over = {kCounters},
                  .hints = {{"classifier.weight", 0, kOtherClasses}}};
  for (const char* const ours : {"conv0.weight", "norm0.*", "denseblock#.denselayer#.conv#.weight",
                                 "denseblock#.denselayer#.norm#.*", "transition#.conv.weight",
                                 "transition#.norm.*", "norm5.*"}) {
    table.rules.push_back({ours, std::string{"features."} + ours});
  }
  return table;
}

// In `features`, a convolution with its ReLU counts as two layers, a pooling as one.
std::vector<NameRule> vgg_rules(std::span<const StoredTensor> arrays) {
  std::vector<NameRule> rules{
      {"fc6.*", "classifier.0.*"}, {"fc7.*", "classifier.3.*"}, {"fc8.*", "classifier.6.*"}};
  std::size_t place = 0;
  std::string stage = "1";
  for (const StoredTensor& array : arrays) {
    const auto numbers = match_name("conv#_#.weight", array.name);
    if (!numbers) continue;
    if (numbers->front() != stage) ++place;
    stage = numbers->front();
    const std::string ours = "conv" + stage + "_" + numbers->back() + ".*";
    rules.push_back({ours, "features." + std::to_string(place) + ".*"});
    place += 2;
  }
  return rules;
}

// torchvision pools any image to 7x7; here it must have this size by itself.
NameTable vgg_names(std::span<const StoredTensor> arrays) {
  constexpr std::size_t kPooled = std::size_t{512} * 7 * 7;
  NameTable table{.source = WeightSource::kTorchvision,
                  .network = "VGG",
                  .mark = "fc6.weight",
                  .rules = vgg_rules(arrays),
                  .hints = {{"classifier.6.weight", 0, kOtherClasses}}};
  const auto hidden = std::ranges::find(arrays, table.mark, &StoredTensor::name);
  if (hidden != arrays.end() && hidden->shape.back() != kPooled) {
    table.obstacle = "the first linear layer there reads 7x7 pixels; train with --image-size 224";
  }
  return table;
}

NameTable squeezenet_names() {
  NameTable table{.source = WeightSource::kTorchvision,
                  .network = "SqueezeNet",
                  .mark = "fire2.squeeze.weight",
                  .rules = {{"conv1.*", "features.0.*"}, {"conv10.*", "classifier.1.*"}},
                  .hints = {{"classifier.1.weight", 0, kOtherClasses}}};
  constexpr std::array<std::pair<int, int>, 8> kFires{
      {{2, 3}, {3, 4}, {4, 6}, {5, 7}, {6, 9}, {7, 10}, {8, 11}, {9, 12}}};
  for (const auto& [ours, theirs] : kFires) {
    table.rules.push_back(
        {"fire" + std::to_string(ours) + ".*.*", "features." + std::to_string(theirs) + ".*.*"});
  }
  return table;
}

/// A part of a network, by both names; empty names for the whole network.
struct Module {
  std::string ours;
  std::string theirs;
};
using Unit = std::pair<const char*, const char*>;

// Adds rules for convolutions with their batch norms.
void add_units(NameTable& table, const Module& module, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    const std::string ours = module.ours + unit.first;
    const std::string theirs = module.theirs + unit.second;
    table.rules.push_back({ours + ".conv.weight", theirs + ".conv.weight"});
    table.rules.push_back({ours + ".bn.*", theirs + ".bn.*"});
  }
}

NameTable googlenet_names() {
  NameTable table{.source = WeightSource::kTorchvision,
                  .network = "GoogLeNet",
                  .mark = "inception3a.1x1.1.conv.weight",
                  .rules = {same_name("fc.*"), same_name("aux#.fc#.*")},
                  .passed_over = {kCounters, "aux#.*"},
                  .hints = {{"fc.weight", 0, kOtherClasses}}};
  constexpr std::array<Unit, 3> kStem{
      {{"conv1.1", "conv1"}, {"conv2.1", "conv2"}, {"conv2.2", "conv3"}}};
  add_units(table, {}, kStem);
  constexpr std::array<Unit, 1> kHead{{{".1", ".conv"}}};
  add_units(table, {"aux#", "aux#"}, kHead);
  constexpr std::array<Unit, 6> kModule{{{".1x1.1", ".branch1"},
                                         {".3x3.1", ".branch2.0"},
                                         {".3x3.2", ".branch2.1"},
                                         {".5x5.1", ".branch3.0"},
                                         {".5x5.2", ".branch3.1"},
                                         {".projection.1", ".branch4.1"}}};
  for (const char* const name : {"3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b"}) {
    const std::string module = std::string{"inception"} + name;
    add_units(table, {module, module}, kModule);
  }
  return table;
}

// Units of Inception's modules: "mixed1.5x5.2" is "Mixed_5b.branch5x5_2".
constexpr std::array<Unit, 11> kInceptionUnits{{{".1x1.1", ".branch1x1"},
                                                {".5x5.#", ".branch5x5_#"},
                                                {".projection.1", ".branch_pool"},
                                                {".7x7.#", ".branch7x7_#"},
                                                {".double7x7.#", ".branch7x7dbl_#"},
                                                {".7x7x3.#", ".branch7x7x3_#"},
                                                {".3x3.across.1", ".branch3x3_2a"},
                                                {".3x3.down.1", ".branch3x3_2b"},
                                                {".double3x3.across.1", ".branch3x3dbl_3a"},
                                                {".double3x3.down.1", ".branch3x3dbl_3b"},
                                                {".double3x3.#", ".branch3x3dbl_#"}}};
// Units of 3x3 convolutions on the grids 35x35, 17x17 and 8x8.
constexpr std::array<Unit, 1> kOn35x35{{{".3x3.#", ".branch3x3dbl_#"}}};
constexpr std::array<Unit, 1> kOn17x17{{{".3x3.1", ".branch3x3"}}};
constexpr std::array<Unit, 1> kOn8x8{{{".3x3.#", ".branch3x3_#"}}};

NameTable inception_names() {
  NameTable table{.source = WeightSource::kTorchvision,
                  .network = "Inception-v3",
                  .mark = "mixed1.1x1.1.conv.weight",
                  .rules = {same_name("fc.*"), {"aux.fc.*", "AuxLogits.fc.*"}},
                  .passed_over = {kCounters, "AuxLogits.*"},
                  .hints = {{"fc.weight", 0, kOtherClasses}}};
  constexpr std::array<Unit, 7> kStem{{{"stem1.1", "Conv2d_1a_3x3"},
                                       {"stem1.2", "Conv2d_2a_3x3"},
                                       {"stem1.3", "Conv2d_2b_3x3"},
                                       {"stem2.1", "Conv2d_3b_1x1"},
                                       {"stem2.2", "Conv2d_4a_3x3"},
                                       {"aux.1", "AuxLogits.conv0"},
                                       {"aux.2", "AuxLogits.conv1"}}};
  add_units(table, {}, kStem);
  constexpr std::array kModules{"5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e", "7a", "7b", "7c"};
  for (std::size_t i = 0; i < kModules.size(); ++i) {
    const Module module{"mixed" + std::to_string(i + 1), std::string{"Mixed_"} + kModules.at(i)};
    add_units(table, module, kInceptionUnits);
    const char grid = kModules.at(i)[0];
    add_units(table, module, grid == '5' ? kOn35x35 : grid == '6' ? kOn17x17 : kOn8x8);
  }
  return table;
}

NameTable vision_transformer_names() {
  const std::string ours = "vit.encoder.layer.#.";
  const std::string theirs = "encoder.layers.encoder_layer_#.";
  return {.source = WeightSource::kTorchvision,
          .network = "ViT",
          .mark = "vit.encoder.layer.0.layernorm_before.weight",
          .rules = {{"vit.embeddings.patch_embeddings.projection.*", "conv_proj.*"},
                    {"vit.embeddings.cls.token", "class_token", TensorForm::kInTwo},
                    {"vit.embeddings.position_embeddings.weight", "encoder.pos_embedding",
                     TensorForm::kInOne},
                    {ours + "layernorm_before.*", theirs + "ln_1.*"},
                    {ours + "attention.attention.qkv.*", theirs + "self_attention.in_proj_*"},
                    {ours + "attention.output.dense.*", theirs + "self_attention.out_proj.*"},
                    {ours + "layernorm_after.*", theirs + "ln_2.*"},
                    {ours + "intermediate.dense.*", theirs + "mlp.0.*"},
                    {ours + "output.dense.*", theirs + "mlp.3.*"},
                    {"vit.layernorm.*", "encoder.ln.*"},
                    {"classifier.*", "heads.head.*"}},
          .spellings = {{theirs + "mlp.linear_1.*", theirs + "mlp.0.*"},
                        {theirs + "mlp.linear_2.*", theirs + "mlp.3.*"}},
          .hints = {{"encoder.pos_embedding", 1,
                     "the file's images have {} tokens; give its --image-size"},
                    {"heads.head.weight", 0, kOtherClasses}}};
}

}  // namespace

std::vector<NameTable> torchvision_names(std::span<const StoredTensor> arrays) {
  return {resnet_names(),    densenet_names(),  vgg_names(arrays),         squeezenet_names(),
          googlenet_names(), inception_names(), vision_transformer_names()};
}

}  // namespace spillway
