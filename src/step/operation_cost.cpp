#include "src/step/operation_cost.h"

namespace spillway {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;  // Clang 14 does not deduce it

OperationCost element_wise(const TensorShape& shape, std::size_t operands, double flops_each) {
  return {.flops = flops_each * static_cast<double>(shape.elements()),
          .traffic = float_bytes(operands * shape.elements())};
}

OperationCost convolution(const ConvolutionGeometry& geometry) {
  const std::size_t taps =
      geometry.x.image.channels / geometry.groups * geometry.kernel.height * geometry.kernel.width;
  return {.flops = 2.0 * static_cast<double>(geometry.y.elements()) * static_cast<double>(taps),
          .traffic = float_bytes(geometry.x.elements() + geometry.y.elements() +
                                 element_count(geometry.parameters()))};
}

// As many products as the convolution that makes x of y, and a sum for the bias.
OperationCost transposed(const TransposedConvolutionGeometry& geometry) {
  OperationCost cost = convolution(geometry.adjoint());
  if (geometry.bias) cost.traffic += float_bytes(geometry.y.image.channels);
  return cost;
}

OperationCost linear(const LinearGeometry& geometry) {
  const std::size_t parameters = element_count(geometry.parameters());
  return {.flops = 2.0 * static_cast<double>(geometry.x.elements()) *
                   static_cast<double>(geometry.features),
          .traffic = float_bytes(geometry.x.elements() + geometry.x.batch * geometry.features +
                                 parameters)};
}

OperationCost pool(const TensorShape& x, const TensorShape& y, const nets::Pool& pool) {
  const std::size_t taps = pool.kernel.height * pool.kernel.width;
  return {.flops = static_cast<double>(y.elements() * taps),
          .traffic = float_bytes(x.elements() + y.elements())};
}

// Squares, a window's sum and a power for each element; backward, a second window's sum.
OperationCost lrn(const TensorShape& x, const nets::LocalResponseNorm& norm, std::size_t operands,
                  std::size_t sums) {
  return element_wise(x, operands, static_cast<double>(sums * norm.size + 10));
}

// Each slice is read and written, and read again where it accumulates.
OperationCost concat_backward(const ConcatBackward& op) {
  OperationCost cost;
  for (const ConcatBackward::Slice& slice : op.slices) {
    const OperationCost part =
        element_wise(slice.x, slice.accumulates ? 3 : 2, slice.accumulates ? 1 : 0);
    cost.flops += part.flops;
    cost.traffic += part.traffic;
  }
  return cost;
}

}  // namespace

OperationCost cost_of(const Operation& operation) {
  return std::visit(
      Overloaded{
          [](const LoadBatch& op) { return element_wise(op.x, 2, 0); },
          [](const ConvolutionForward& op) { return convolution(op.geometry); },
          [](const ConvolutionBackwardData& op) { return convolution(op.geometry); },
          [](const ConvolutionBackwardWeights& op) { return convolution(op.geometry); },
          [](const TransposedConvolutionForward& op) { return transposed(op.geometry); },
          [](const TransposedConvolutionBackwardData& op) { return transposed(op.geometry); },
          [](const TransposedConvolutionBackwardWeights& op) { return transposed(op.geometry); },
          [](const BatchNormForward& op) { return element_wise(op.x, 3, 8); },
          [](const BatchNormInference& op) { return element_wise(op.x, 2, 2); },
          [](const BatchNormBackward& op) { return element_wise(op.x, 5, 12); },
          [](const ReluForward& op) { return element_wise(op.x, 2, 1); },
          [](const ReluBackward& op) { return element_wise(op.x, 3, 1); },
          [](const AddForward& op) { return element_wise(op.x, 3, 1); },
          [](const AddGradients& op) { return element_wise(op.x, op.relu ? 4 : 3, 1); },
          [](const PoolForward& op) { return pool(op.x, op.y, op.pool); },
          [](const PoolBackward& op) { return pool(op.x, op.y, op.pool); },
          [](const LrnForward& op) { return lrn(op.x, op.norm, 2, 1); },
          [](const LrnBackward& op) { return lrn(op.x, op.norm, 4, 2); },
          [](const ConcatForward& op) { return element_wise(op.whole(), 2, 0); },
          [](const ConcatBackward& op) { return concat_backward(op); },
          [](const CropForward& op) { return element_wise(op.y, 2, 0); },
          [](const CropBackward& op) {
            return OperationCost{.flops = 0,
                                 .traffic = float_bytes(op.x.elements() + op.y.elements())};
          },
          [](const LinearForward& op) { return linear(op.geometry); },
          [](const LinearBackwardData& op) { return linear(op.geometry); },
          [](const LinearBackwardWeights& op) { return linear(op.geometry); },
          [](const DropoutForward& op) { return element_wise(op.x, 2, 10); },
          [](const DropoutBackward& op) { return element_wise(op.x, 2, 10); },
          [](const SoftmaxCrossEntropyTrain& op) { return element_wise(op.x, 2, 10); },
          [](const SoftmaxCrossEntropyEvaluate& op) { return element_wise(op.x, 1, 10); },
          [](const SgdUpdate& op) {
            const std::size_t count = element_count(op.parameters);
            return OperationCost{
                .flops = (op.options.nesterov ? 7.0 : 5.0) * static_cast<double>(count),
                .traffic = float_bytes(5 * count)};
          },
          [](const AdamUpdate& op) {
            const std::size_t count = element_count(op.parameters);
            return OperationCost{.flops = 15.0 * static_cast<double>(count),
                                 .traffic = float_bytes(7 * count)};
          },
          [](const AccumulateGradients& op) {
            const std::size_t count = element_count(op.parameters);
            return OperationCost{.flops = static_cast<double>(count),
                                 .traffic = float_bytes(3 * count)};
          },
      },
      operation);
}

}  // namespace spillway
