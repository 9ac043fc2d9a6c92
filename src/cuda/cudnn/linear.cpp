#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/cuda/cudnn/cublas_matmul.h"
#include "src/cuda/kernels/kernels.h"
#include "src/cuda/layout/parameter_layout.h"
#include "src/ops/backend.h"

namespace spillway::cuda {
namespace {

// An image is a row of a matrix, padding included, in memory order; the weights are (outputs x
// inputs).
std::size_t inputs(const LinearGeometry& g) { return Layout::padded(g.x.image).elements(); }
std::size_t outputs(const LinearGeometry& g) { return Layout::padded(g.features); }

ChannelMatrix outputs_of(const LinearGeometry& g) {
  return {.rows = g.x.batch, .channels = outputs(g)};
}

std::string purpose(const std::string& pass, const LinearGeometry& g) {
  return "the linear layer's " + pass + ", " + std::to_string(g.x.batch) + " x " +
         to_string(g.x.image) + " to " + std::to_string(g.features);
}

MatmulProblem problem_of(const LinearForward& op) {
  const LinearGeometry& g = op.geometry;
  return {.rows = g.x.batch,
          .columns = outputs(g),
          .inner = inputs(g),
          .b_is_transposed = true,
          .bias = g.bias,
          .purpose = purpose("forward pass", g)};
}
MatmulProblem problem_of(const LinearBackwardData& op) {
  const LinearGeometry& g = op.geometry;
  return {.rows = g.x.batch,
          .columns = inputs(g),
          .inner = outputs(g),
          .purpose = purpose("gradient of the data", g)};
}

// Returns the outputs of the operation's part, without biases.
FloatRange part_outputs(const LinearBackwardWeights& op) {
  const LinearGeometry& g = op.geometry;
  const FloatRange floats = ParameterLayout{Precision::kFp32, g.parameters()}.cuts().range(op.part);
  return {.begin = floats.begin / inputs(g), .end = std::min(floats.end / inputs(g), outputs(g))};
}

MatmulProblem problem_of(const LinearBackwardWeights& op) {
  const LinearGeometry& g = op.geometry;
  return {.rows = part_outputs(op).count(),
          .columns = inputs(g),
          .inner = g.x.batch,
          .a_is_transposed = true,
          .a_stride = outputs(g),
          .d_is_float = true,
          .purpose = purpose("gradient of the weights", g)};
}

// The last part has the biases.
bool has_bias(const LinearBackwardWeights& op) { return op.geometry.bias && op.part.is_last(); }

// Returns the bytes for bias sums at the start of the workspace of the weights' gradient.
um::Bytes sums_bytes(const LinearBackwardWeights& op) {
  constexpr um::Bytes kAlignment{256};
  return has_bias(op) ? um::round_up(channel_sums_workspace(outputs_of(op.geometry)), kAlignment)
                      : um::Bytes{};
}

template <class Op>
ParameterLayout layout_of(const Machine& machine, const Op& op) {
  return {machine.precision, op.geometry.parameters()};
}

// Returns the algorithms of the operation's product, each with `more` additional workspace.
template <class Op>
std::vector<AlgorithmInfo> offered_products(const Machine& machine, const Op& op, um::Bytes more) {
  std::vector<AlgorithmInfo> all;
  for (MatmulAlgorithm& each : matmul_algorithms(machine, problem_of(op))) {
    all.push_back({.name = std::move(each.name), .workspace = more + each.workspace});
  }
  std::ranges::stable_sort(all, {}, &AlgorithmInfo::workspace);
  return all;
}

}  // namespace

std::vector<AlgorithmInfo> algorithms_of(const Machine& machine, const LinearForward& op) {
  return offered_products(machine, op, {});
}
std::vector<AlgorithmInfo> algorithms_of(const Machine& machine, const LinearBackwardData& op) {
  return offered_products(machine, op, {});
}
std::vector<AlgorithmInfo> algorithms_of(const Machine& machine, const LinearBackwardWeights& op) {
  return offered_products(machine, op, sums_bytes(op));
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LinearForward& op,
                                    std::string_view algorithm) {
  const ParameterLayout layout = layout_of(machine, op);
  const Matmul matmul{machine, problem_of(op), algorithm};
  const auto multiply = [=](const auto& operands, const auto& arguments) {
    matmul.run(operands.in.x, kernel_weights(layout, operands.in.parameters),
               kernel_bias(layout, operands.in.parameters), operands.out.y, arguments.workspace);
    const float* const bias =
        matmul.adds_bias() ? nullptr : float_bias(layout, operands.in.parameters);
    add_bias_relu(machine, outputs_of(op.geometry), operands.out.y, bias, op.relu);
  };
  return kernel_of(op, multiply);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LinearBackwardData& op,
                                    std::string_view algorithm) {
  const ParameterLayout layout = layout_of(machine, op);
  const Matmul matmul{machine, problem_of(op), algorithm};
  const auto multiply = [=](const auto& operands, const auto& arguments) {
    matmul.run(operands.in.dy, kernel_weights(layout, operands.in.parameters), nullptr,
               operands.out.dx, arguments.workspace);
  };
  return kernel_of(op, multiply);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const LinearBackwardWeights& op,
                                    std::string_view algorithm) {
  const ParameterLayout layout = layout_of(machine, op);
  const Matmul matmul{machine, problem_of(op), algorithm};
  const um::Bytes first_output = part_outputs(op).begin * Layout{machine.precision}.element_bytes();
  const std::size_t bias = layout.weight_count() - layout.cuts().range(op.part).begin;
  const auto multiply = [=](const auto& operands, const auto& arguments) {
    matmul.run(operands.in.dy + first_output.count(), operands.in.x, nullptr,
               operands.out.dparameters, arguments.workspace + sums_bytes(op).count());
    if (!has_bias(op)) return;
    channel_sums(machine, outputs_of(op.geometry), operands.in.dy, arguments.workspace,
                 reinterpret_cast<float*>(operands.out.dparameters) + bias);
  };
  return kernel_of(op, multiply);
}

}  // namespace spillway::cuda
