// The content of written files in ONNX's terms, and the names in them.
// A network that is written as ONNX and read again is the same, and its arrays have the same bits.
#include "src/io/onnx/export_onnx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "nets/builder.h"
#include "nets/families/network_catalogue.h"
#include "src/io/onnx/import_onnx.h"
#include "src/io/onnx/onnx_model.h"
#include "src/program/machine_size_model.h"
#include "src/train/checkpoint/state.h"
#include "tests/nets/same_network.h"
#include "tests/refusal.h"
#include "tests/src/io/onnx/small_graph.h"
#include "tests/src/io/weights/weight_networks.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using Names = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

// Returns the first node for a network of only this layer, with input (4, 8, 8).
OnnxNode written(const nets::Layer& layer) {
  nets::Builder net{"one", {.channels = 4, .height = 8, .width = 8}};
  OnnxModel model = exported(net.build(net.add("l", layer, {net.input()})));
  return model.nodes.front();
}

TEST(ExportOnnx, WritesAConvolution) {
  EXPECT_EQ(written(nets::Convolution{.channels = 6,
                                      .kernel = {3, 2},
                                      .stride = {2, 1},
                                      .padding = {1, 0},
                                      .dilation = {1, 3},
                                      .groups = 2}),
            (OnnxNode{.type = "Conv",
                      .name = "l",
                      .inputs = {"image", "l.weight", "l.bias"},
                      .outputs = {"logits"},
                      .attributes = {{"kernel_shape", Numbers{3, 2}},
                                     {"strides", Numbers{2, 1}},
                                     {"pads", Numbers{1, 0, 1, 0}},
                                     {"dilations", Numbers{1, 3}},
                                     {"group", std::int64_t{2}}}}));
}

TEST(ExportOnnx, WritesAPoolOfMeans) {
  EXPECT_EQ(written(nets::Pool{.kind = nets::PoolKind::kAverage,
                               .kernel = {3, 2},
                               .stride = {2, 2},
                               .padding = {1, 0},
                               .counts_padding = false,
                               .rounds_up = true}),
            (OnnxNode{.type = "AveragePool",
                      .name = "l",
                      .inputs = {"image"},
                      .outputs = {"logits"},
                      .attributes = {{"kernel_shape", Numbers{3, 2}},
                                     {"strides", Numbers{2, 2}},
                                     {"pads", Numbers{1, 0, 1, 0}},
                                     {"ceil_mode", std::int64_t{1}},
                                     {"count_include_pad", std::int64_t{0}}}}));
}

TEST(ExportOnnx, WritesBatchNorm) {
  EXPECT_EQ(written(nets::BatchNorm{.epsilon = 1e-3F, .momentum = 0.25F}),
            (OnnxNode{.type = "BatchNormalization",
                      .name = "l",
                      .inputs = {"image", "l.weight", "l.bias", "l.running_mean", "l.running_var"},
                      .outputs = {"logits"},
                      .attributes = {{"epsilon", 1e-3F}, {"momentum", 0.75F}}}));
}

TEST(ExportOnnx, WritesLocalResponseNorm) {
  EXPECT_EQ(
      written(nets::LocalResponseNorm{.size = 3, .alpha = 1e-3F, .beta = 0.5F, .k = 2}),
      (OnnxNode{.type = "LRN",
                .name = "l",
                .inputs = {"image"},
                .outputs = {"logits"},
                .attributes = {
                    {"size", std::int64_t{3}}, {"alpha", 1e-3F}, {"beta", 0.5F}, {"bias", 2.F}}}));
}

// Layer `fc` has a part called fc.flatten, and another layer is named `fc.flatten`.
TEST(ExportOnnx, WritesALinearLayerWhoseNamesAreItsOwn) {
  nets::Builder net{"two", {.channels = 4, .height = 8, .width = 8}};
  const nets::NodeId fc = net.linear("fc", net.input(), {.features = 3});
  const nets::NodeId relu = net.relu("fc.flatten", fc);
  const OnnxModel model = exported(net.build(net.linear("head", relu, {.features = 2})));
  const std::int64_t one = 1;
  EXPECT_EQ(model.nodes,
            (std::vector<OnnxNode>{{.type = "Flatten",
                                    .name = "fc.flatten",
                                    .inputs = {"image"},
                                    .outputs = {"fc.flatten.out"},
                                    .attributes = {{"axis", one}}},
                                   {.type = "Gemm",
                                    .name = "fc",
                                    .inputs = {"fc.flatten.out", "fc.weight", "fc.bias"},
                                    .outputs = {"fc.out"},
                                    .attributes = {{"transB", one}}},
                                   {.type = "Relu",
                                    .name = "fc.flatten_2",
                                    .inputs = {"fc.out"},
                                    .outputs = {"fc.flatten.out_2"},
                                    .attributes = {}},
                                   {.type = "Gemm",
                                    .name = "head",
                                    .inputs = {"fc.flatten.out_2", "head.weight", "head.bias"},
                                    .outputs = {"logits"},
                                    .attributes = {{"transB", one}}}}));
}

TEST(ExportOnnx, SharesEqualConstantsAlone) {
  OnnxModel model;
  const ArraySource arrays = draw_array;
  GraphWriter graph{model, arrays};
  EXPECT_EQ(graph.integers("a.shape", {0, 4}), "a.shape");
  EXPECT_EQ(graph.integers("a.shape", {0, 5}), "a.shape_2");
  EXPECT_EQ(graph.integers("a.shape", {0, 4}), "a.shape");
  EXPECT_EQ(graph.integers("a.shape", {0, 5}), "a.shape_2");
  EXPECT_EQ(graph.floats("a.shape", {}, {1}), "a.shape_3");
  EXPECT_EQ(graph.array("a.weight", {2}), "a.weight");
  EXPECT_EQ(graph.array("a.weight", {2}), "a.weight");
  EXPECT_EQ(model.tensors.size(), 4U);
}

TEST(ExportOnnx, HasOneCausalMaskForEachNumberOfTokens) {
  const OnnxModel model = exported(weight_network("gpt"));
  Names masks;
  for (const OnnxTensor& tensor : model.tensors) {
    if (tensor.name.starts_with("causal_mask")) masks.push_back(tensor.name);
  }
  EXPECT_EQ(masks, Names{"causal_mask.10"});
}

constexpr std::size_t kClasses = 7;

std::vector<StoredTensor> arrays_of_network(const nets::Network& network) {
  return weight_tensors(
      make_training_step(nets::without_auxiliary_heads(network), MachineSizeModel{}, {.batch = 2}));
}

std::map<std::string, std::vector<std::size_t>> shapes_of(const std::vector<StoredTensor>& arrays) {
  std::map<std::string, std::vector<std::size_t>> shapes;
  for (const StoredTensor& array : arrays) shapes[array.name] = array.shape;
  return shapes;
}

// Shapes of a file's arrays that belong to the network; operators also have constants.
std::map<std::string, std::vector<std::size_t>> arrays_in(const OnnxModel& model,
                                                          const nets::Network& network) {
  const auto wanted = shapes_of(arrays_of_network(network));
  std::map<std::string, std::vector<std::size_t>> shapes;
  for (const OnnxTensor& tensor : model.tensors) {
    if (wanted.contains(tensor.name)) shapes[tensor.name] = tensor.shape;
  }
  return shapes;
}

struct SmallNet {
  std::string name;
  std::size_t side;
};

// gtest requires this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const SmallNet& net, std::ostream* out) { *out << net.name; }

nets::Network small_network(const SmallNet& net) {
  const nets::CatalogueEntry entry = nets::find_network(net.name);
  const nets::Shape image{.channels = entry.image.channels, .height = net.side, .width = net.side};
  return nets::build_network(entry, {.image = image, .classes = kClasses});
}

std::string test_name(const testing::TestParamInfo<SmallNet>& given) {
  std::string name = given.param.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class ConvolutionalNetwork : public testing::TestWithParam<SmallNet> {};

TEST_P(ConvolutionalNetwork, IsTheSameWhenReadAgain) {
  const nets::Network network = small_network(GetParam());
  const ImportedNetwork back = import_onnx(exported(network), "file.onnx");

  const nets::Network again = nets::build_network(back.entry);
  EXPECT_EQ(difference(again, without_dropout(network)), "");
  const std::vector<StoredTensor> arrays = arrays_of_network(network);
  EXPECT_EQ(back.arrays.size(), arrays.size());
  for (const StoredTensor& array : arrays) {
    const std::vector<float>& numbers = back.arrays.at(array.name);
    EXPECT_TRUE(numbers == drawn_array(array.name, numbers.size())) << array.name;
    EXPECT_EQ(numbers.size(), element_count(array.shape)) << array.name;
  }
}

TEST(ImportedNetworks, HaveTransposedConvolutionsWithGroups) {
  nets::Builder net{"net", {.channels = 4, .height = 8, .width = 8}};
  const nets::NodeId up = net.transposed_convolution(
      "up", net.input(), {.channels = 6, .kernel = {2, 2}, .stride = {2, 2}, .groups = 2});
  const nets::Network network = net.build(net.linear("head", up, {kClasses}));
  const ImportedNetwork back = import_onnx(exported(network), "file.onnx");
  EXPECT_EQ(difference(nets::build_network(back.entry), network), "");
}

TEST_P(ConvolutionalNetwork, TakesOtherClassesAtItsHead) {
  const nets::Network network = small_network(GetParam());
  const ImportedNetwork back = import_onnx(exported(network), "file.onnx");
  const nets::Network more = nets::build_network(back.entry, {.classes = kClasses + 1});
  EXPECT_EQ(more.classes(), kClasses + 1);

  std::vector<float> head(3, -1.F);
  fill_array(back, back.head + ".bias", head, /*has_new_head=*/true);
  EXPECT_EQ(head, std::vector<float>(3, -1.F));
}

INSTANTIATE_TEST_SUITE_P(OfEachFamily, ConvolutionalNetwork,
                         testing::Values(SmallNet{"lenet", 28}, SmallNet{"alexnet", 67},
                                         SmallNet{"vgg11", 32}, SmallNet{"googlenet", 32},
                                         SmallNet{"inception-v3", 75}, SmallNet{"resnet18", 32},
                                         SmallNet{"resnet50", 32}, SmallNet{"densenet121", 32},
                                         SmallNet{"squeezenet", 64}),
                         test_name);

TEST(ExportedNetwork, HasEachArrayOnceInItsShape) {
  for (const SmallNet& net :
       {SmallNet{"lenet", 28}, SmallNet{"resnet18", 32}, SmallNet{"fcn8s", 32}}) {
    const nets::Network network = small_network(net);
    EXPECT_EQ(arrays_in(exported(network), network), shapes_of(arrays_of_network(network)))
        << net.name;
  }
  for (const char* const name : {"gpt", "llama", "bert", "vit"}) {
    const nets::Network network = weight_network(name);
    EXPECT_EQ(arrays_in(exported(network), network), shapes_of(arrays_of_network(network))) << name;
  }
}

// Each value is computed once, before it is read.
TEST(ExportedNetwork, IsAGraphInOrder) {
  std::vector<nets::Network> networks{small_network({"googlenet", 32}),
                                      small_network({"fcn32s", 32})};
  for (const char* const name : {"gpt", "llama", "bert", "vit"}) {
    networks.push_back(weight_network(name));
  }
  for (const nets::Network& network : networks) {
    const OnnxModel model = exported(network);
    std::set<std::string> known{model.inputs.front().name};
    for (const OnnxTensor& tensor : model.tensors) {
      EXPECT_TRUE(known.insert(tensor.name).second) << tensor.name;
    }
    for (const OnnxNode& node : model.nodes) {
      for (const std::string& input : node.inputs) EXPECT_TRUE(known.contains(input)) << input;
      for (const std::string& output : node.outputs) {
        EXPECT_TRUE(known.insert(output).second) << output;
      }
    }
    EXPECT_TRUE(known.contains("logits")) << network.name;
  }
}

TEST(ExportedNetwork, LeavesOutAuxiliaryHeadsAndDropout) {
  const nets::Network network =
      nets::build_network("googlenet", {.image = nets::Shape{3, 96, 96}, .auxiliary_heads = true});
  const OnnxModel model = exported(network);
  EXPECT_TRUE(std::ranges::none_of(model.nodes, [](const OnnxNode& node) {
    return node.type == "Dropout" || node.name.starts_with("aux");
  }));
}

TEST(ImportedNetworks, NameTheImageSizeThatDoesNotFit) {
  const ImportedNetwork lenet = import_onnx(exported(small_network({"lenet", 28})), "file.onnx");
  const nets::Network larger = nets::build_network(lenet.entry, {.image = nets::Shape{1, 32, 32}});
  EXPECT_EQ(larger.input(), (nets::Shape{1, 32, 32}));
  std::vector<float> numbers(576UL * 120UL);  // 16 x 6 x 6 features; the file has 16 x 5 x 5
  const auto refusal_of = [&](const std::string& name) {
    return refusal([&] {
      fill_array(lenet, name, numbers, false);
      return true;
    });
  };
  EXPECT_EQ(refusal_of("fc3.weight"),
            "layer fc3 of file.onnx has 48000 numbers in fc3.weight, but needs 69120 for this "
            "--image-size; leave that out");
  EXPECT_EQ(refusal_of("fc9.weight"), "file.onnx has no array fc9.weight, which its network needs");
}

TEST(OnnxFile, GivesBackWhatWasWritten) {
  if (!has_onnx_library()) GTEST_SKIP() << "built without ONNX's library";
  const TemporaryFolder folder;
  for (const nets::Network& network : {small_network({"resnet18", 32}), weight_network("llama")}) {
    OnnxModel model = exported(network);
    model.metadata["class_names"] = R"(["a","b"])";
    write_onnx(model, folder.file("net.onnx"));
    EXPECT_TRUE(read_onnx(folder.file("net.onnx")) == model) << network.name;
  }
}

}  // namespace
}  // namespace spillway::test
