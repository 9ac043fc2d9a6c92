#include <algorithm>

#include "src/cuda/kernels/batch_norm_kernels.h"
#include "src/cuda/kernels/kernels.h"
#include "src/cuda/layout/cuda_kernel.h"

namespace spillway::cuda {
namespace {

float* floats(std::byte* operand) { return reinterpret_cast<float*>(operand); }

// What makes the biased variance of a batch unbiased. One value a channel has no unbiased variance;
// its biased one, zero, stands in.
float unbiased(const ChannelMatrix& matrix) {
  return static_cast<float>(matrix.rows) /
         static_cast<float>(std::max<std::size_t>(matrix.rows - 1, 1));
}

class BatchNormForwardKernel final : public CudaKernel {
 public:
  BatchNormForwardKernel(const Machine& machine, const BatchNormForward& op)
      : CudaKernel{machine, operand_count(op)}, op_{op}, matrix_{matrix_of(op.x)} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of(op_, arguments.operands);
    float* const saved = floats(operands.out.saved);
    batch_moments(machine(), matrix_, operands.in.x, arguments.workspace, saved,
                  {.running = arguments.is_recomputation ? nullptr : floats(operands.out.running),
                   .momentum = op_.momentum,
                   .unbiased = unbiased(matrix_)});
    normalise(machine(), matrix_,
              {.gamma_beta = floats(operands.in.parameters),
               .mean_variance = saved,
               .epsilon = op_.epsilon},
              operands.in.x, operands.out.y, {.applies = op_.relu, .mask = operands.out.mask});
  }

  BatchNormForward op_;
  ChannelMatrix matrix_;
};

class BatchNormInferenceKernel final : public CudaKernel {
 public:
  BatchNormInferenceKernel(const Machine& machine, const BatchNormInference& op)
      : CudaKernel{machine, operand_count(op)}, op_{op} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of<BatchNormInference>(arguments.operands);
    normalise(machine(), matrix_of(op_.x),
              {.gamma_beta = floats(operands.in.parameters),
               .mean_variance = floats(operands.in.running),
               .epsilon = op_.epsilon},
              operands.in.x, operands.out.y, {.applies = op_.relu, .mask = nullptr});
  }

  BatchNormInference op_;
};

class BatchNormBackwardKernel final : public CudaKernel {
 public:
  BatchNormBackwardKernel(const Machine& machine, const BatchNormBackward& op)
      : CudaKernel{machine, operand_count(op)}, op_{op}, matrix_{matrix_of(op.x)} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto operands = operands_of(op_, arguments.operands);
    float* const gradient = floats(operands.out.dparameters);
    const NormVectors vectors{.gamma_beta = floats(operands.in.parameters),
                              .mean_variance = floats(operands.in.saved),
                              .epsilon = op_.epsilon};
    const NormOperands read{.x = operands.in.x, .dy = operands.in.dy, .mask = operands.in.mask};
    batch_slopes(machine(), matrix_, vectors, read, arguments.workspace, gradient);
    normalise_backward(machine(), matrix_, vectors, read, gradient, operands.out.dx);
  }

  BatchNormBackward op_;
  ChannelMatrix matrix_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const BatchNormForward& op) {
  return std::make_unique<BatchNormForwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const BatchNormInference& op) {
  return std::make_unique<BatchNormInferenceKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const BatchNormBackward& op) {
  return std::make_unique<BatchNormBackwardKernel>(machine, op);
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
