#include "src/cuda/cudnn/convolution_graph.h"

#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

// Virtual tensors of fused_graph's kernel.
constexpr std::int64_t kTensorSum = 's';
constexpr std::int64_t kTensorBiased = 'a';

std::int64_t dim(std::size_t n) { return static_cast<std::int64_t>(n); }

cudnnDataType_t element_of(Precision precision) {
  return precision == Precision::kBf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

GraphTensor activation(std::int64_t id, cudnnDataType_t type, const TensorShape& shape) {
  const nets::Shape image = Layout::padded(shape.image);
  return {.id = id,
          .type = type,
          .dims = {dim(shape.batch), dim(image.channels), dim(image.height), dim(image.width)}};
}

// cuDNN derives the number of groups from the channels of x and of the weights.
GraphTensor weights(cudnnDataType_t type, const ConvolutionGeometry& g) {
  return {.id = kTensorW,
          .type = type,
          .dims = {dim(Layout::padded(g.y.image.channels)), dim(filter_channels(g.parameters())),
                   dim(g.kernel.height), dim(g.kernel.width)}};
}

ConvolutionNode convolution(const ConvolutionProblem& problem, std::int64_t y) {
  const ConvolutionGeometry& g = problem.geometry;
  return {.pass = problem.pass,
          .x = kTensorX,
          .w = kTensorW,
          .y = y,
          .stride = {dim(g.stride.height), dim(g.stride.width)},
          .padding = {dim(g.padding.height), dim(g.padding.width)},
          .dilation = {dim(g.dilation.height), dim(g.dilation.width)}};
}

std::string pass_name(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward:
      return "forward convolution";
    case ConvolutionPass::kBackwardData:
      return "convolution's gradient of the data";
    case ConvolutionPass::kBackwardWeights:
      break;
  }
  return "convolution's gradient of the weights";
}

bool is_padded(std::size_t channels) { return Layout::padded(channels) != channels; }

}  // namespace

bool has_whole_groups(const ConvolutionGeometry& g) {
  const std::size_t in = g.x.image.channels;
  const std::size_t out = g.y.image.channels;
  return g.groups == 1 || (in == g.groups && out == g.groups) ||
         (!is_padded(in) && !is_padded(out));
}

std::string describe(const ConvolutionProblem& problem) {
  const ConvolutionGeometry& g = problem.geometry;
  return "the " + pass_name(problem.pass) + ", " + std::to_string(g.x.batch) + " x " +
         to_string(g.x.image) + " to " + to_string(g.y.image) + " (kernel " +
         std::to_string(g.kernel.height) + "x" + std::to_string(g.kernel.width) + ")";
}

CudnnGraph plain_graph(const CudnnTarget& target, Precision precision,
                       const ConvolutionProblem& problem) {
  const cudnnDataType_t type = element_of(precision);
  const ConvolutionGeometry& g = problem.geometry;
  const std::array<GraphTensor, 3> tensors{activation(kTensorX, type, g.x), weights(type, g),
                                           activation(kTensorY, type, g.y)};
  const std::array<GraphNode, 1> nodes{convolution(problem, kTensorY)};
  return {target, tensors, nodes};
}

CudnnGraph fused_graph(const CudnnTarget& target, Precision precision,
                       const ConvolutionProblem& problem) {
  const cudnnDataType_t type = element_of(precision);
  const ConvolutionGeometry& g = problem.geometry;
  GraphTensor sum = activation(kTensorSum, CUDNN_DATA_FLOAT, g.y);
  sum.is_virtual = true;
  GraphTensor biased = activation(kTensorBiased, CUDNN_DATA_FLOAT, g.y);
  biased.is_virtual = true;
  std::vector<GraphTensor> tensors{activation(kTensorX, type, g.x), weights(type, g),
                                   activation(kTensorY, type, g.y), sum};
  tensors.push_back({.id = kTensorBias,
                     .type = type,
                     .dims = {1, dim(Layout::padded(g.y.image.channels)), 1, 1}});
  if (problem.relu) tensors.push_back(biased);
  std::vector<GraphNode> nodes{convolution(problem, kTensorSum)};
  nodes.emplace_back(PointwiseNode{.mode = CUDNN_POINTWISE_ADD,
                                   .x = kTensorSum,
                                   .b = kTensorBias,
                                   .y = problem.relu ? kTensorBiased : kTensorY});
  if (problem.relu) {
    nodes.emplace_back(PointwiseNode{
        .mode = CUDNN_POINTWISE_RELU_FWD, .x = kTensorBiased, .b = std::nullopt, .y = kTensorY});
  }
  return {target, tensors, nodes};
}

}  // namespace spillway::cuda
