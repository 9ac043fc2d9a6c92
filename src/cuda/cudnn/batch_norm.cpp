#include <algorithm>

#include "src/cuda/kernels/batch_norm_kernels.h"
#include "src/cuda/kernels/kernels.h"
#include "src/cuda/layout/cuda_kernel.h"

namespace spillway::cuda {
namespace {

float* floats(const KernelArguments& arguments, std::size_t i) {
  return reinterpret_cast<float*>(arguments.operands[i]);
}

// What makes the biased variance of a batch unbiased. One value a channel has no unbiased variance;
// its biased one, zero, stands in.
float unbiased(const ChannelMatrix& matrix) {
  return static_cast<float>(matrix.rows) /
         static_cast<float>(std::max<std::size_t>(matrix.rows - 1, 1));
}

class BatchNormForwardKernel final : public CudaKernel {
 public:
  BatchNormForwardKernel(const Machine& machine, const BatchNormForward& op)
      : CudaKernel{machine, op.relu ? 6U : 5U}, op_{op}, matrix_{matrix_of(op.x)} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto& operands = arguments.operands;
    float* const saved = floats(arguments, 3);
    batch_moments(machine(), matrix_, operands[0], arguments.workspace, saved,
                  {.running = arguments.is_recomputation ? nullptr : floats(arguments, 4),
                   .momentum = op_.momentum,
                   .unbiased = unbiased(matrix_)});
    normalise(machine(), matrix_,
              {.gamma_beta = floats(arguments, 1), .mean_variance = saved, .epsilon = op_.epsilon},
              operands[0], operands[2],
              {.applies = op_.relu, .mask = op_.relu ? operands[5] : nullptr});
  }

  BatchNormForward op_;
  ChannelMatrix matrix_;
};

class BatchNormInferenceKernel final : public CudaKernel {
 public:
  BatchNormInferenceKernel(const Machine& machine, const BatchNormInference& op)
      : CudaKernel{machine, 4}, op_{op} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    normalise(machine(), matrix_of(op_.x),
              {.gamma_beta = floats(arguments, 1),
               .mean_variance = floats(arguments, 2),
               .epsilon = op_.epsilon},
              arguments.operands[0], arguments.operands[3], {.applies = op_.relu, .mask = nullptr});
  }

  BatchNormInference op_;
};

class BatchNormBackwardKernel final : public CudaKernel {
 public:
  BatchNormBackwardKernel(const Machine& machine, const BatchNormBackward& op)
      : CudaKernel{machine, op.relu ? 7U : 6U}, op_{op}, matrix_{matrix_of(op.x)} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const auto& operands = arguments.operands;
    const std::size_t dx = op_.relu ? 5 : 4;
    float* const gradient = floats(arguments, dx + 1);
    const NormVectors vectors{.gamma_beta = floats(arguments, 2),
                              .mean_variance = floats(arguments, 3),
                              .epsilon = op_.epsilon};
    const NormOperands read{
        .x = operands[0], .dy = operands[1], .mask = op_.relu ? operands[4] : nullptr};
    batch_slopes(machine(), matrix_, vectors, read, arguments.workspace, gradient);
    normalise_backward(machine(), matrix_, vectors, read, gradient, operands[dx]);
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
