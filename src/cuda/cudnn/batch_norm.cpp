#include "src/cuda/kernels/batch_norm.h"

#include <algorithm>

#include "src/cuda/kernels/kernels.h"
#include "src/ops/backend.h"

namespace spillway::cuda {
namespace {

float* floats(std::byte* operand) { return reinterpret_cast<float*>(operand); }

// Returns the factor from biased to unbiased variance of a batch. The unbiased variance of a single
// value per channel does not exist; the biased one, zero, is used instead.
float unbiased(const ChannelMatrix& matrix) {
  return static_cast<float>(matrix.rows) /
         static_cast<float>(std::max<std::size_t>(matrix.rows - 1, 1));
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const BatchNormForward& op) {
  const ChannelMatrix matrix = matrix_of(op.x);
  const auto train = [machine, op, matrix](const auto& operands, const auto& arguments) {
    float* const saved = floats(operands.out.saved);
    batch_moments(machine, matrix, operands.in.x, arguments.workspace, saved,
                  {.running = arguments.is_recomputation ? nullptr : floats(operands.out.running),
                   .momentum = op.momentum,
                   .unbiased = unbiased(matrix)});
    normalise(machine, matrix,
              {.gamma_beta = floats(operands.in.parameters),
               .mean_variance = saved,
               .epsilon = op.epsilon},
              operands.in.x, operands.out.y, {.applies = op.relu, .mask = operands.out.mask});
  };
  return kernel_of(op, train);
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const BatchNormInference& op) {
  return kernel_of(op, [machine, op](const auto& operands) {
    normalise(machine, matrix_of(op.x),
              {.gamma_beta = floats(operands.in.parameters),
               .mean_variance = floats(operands.in.running),
               .epsilon = op.epsilon},
              operands.in.x, operands.out.y, {.applies = op.relu, .mask = nullptr});
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const BatchNormBackward& op) {
  const ChannelMatrix matrix = matrix_of(op.x);
  const auto differentiate = [machine, op, matrix](const auto& operands, const auto& arguments) {
    float* const gradient = floats(operands.out.dparameters);
    const NormVectors vectors{.gamma_beta = floats(operands.in.parameters),
                              .mean_variance = floats(operands.in.saved),
                              .epsilon = op.epsilon};
    const NormOperands read{.x = operands.in.x, .dy = operands.in.dy, .mask = operands.in.mask};
    batch_slopes(machine, matrix, vectors, read, arguments.workspace, gradient);
    normalise_backward(machine, matrix, vectors, read, gradient, operands.out.dx);
  };
  return kernel_of(op, differentiate);
}

um::Bytes workspace_of(const Machine& /*machine*/, const BatchNormForward& op) {
  return norm_workspace(matrix_of(op.x));
}
um::Bytes workspace_of(const Machine& /*machine*/, const BatchNormInference& /*op*/) { return {}; }
um::Bytes workspace_of(const Machine& /*machine*/, const BatchNormBackward& op) {
  return norm_workspace(matrix_of(op.x));
}

um::Bytes saved_bytes(const Machine& /*machine*/, const BatchNormForward& op) {
  if (!op.relu) return {};
  const ChannelMatrix matrix = matrix_of(op.x);
  return um::Bytes{matrix.rows * matrix.groups()};
}

}  // namespace spillway::cuda
