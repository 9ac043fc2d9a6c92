// What files hold, in ONNX's own words, and the names of it.

#include "src/io/onnx/export_onnx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nets/builder.h"
#include "tests/src/onnx/drawn_arrays.h"
#include "tests/src/weights/weight_networks.h"

namespace spillway::test {
namespace {

using Names = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

// The first node of the only layer of a network that reads (4, 8, 8).
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

// Layers `fc`, whose part is called fc.flatten, and `fc.flatten`.
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

}  // namespace
}  // namespace spillway::test
