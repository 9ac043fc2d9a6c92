#include <cmath>
#include <numbers>

#include "src/host/kernels/kernels.h"

namespace spillway::host {
namespace {

// The loops below run over whole tensors: zeros, of which padding consists, stay zeros. An output
// may be one of the inputs, since each element depends on its own place only. A NaN is no negative
// number, so it stays and shows in the loss. What is read is read whatever the condition, which a
// compiler may not decide by itself: a branch for each number makes a loop take five times as long.

class ReluForwardKernel final : public HostKernel {
 public:
  ReluForwardKernel(const Machine& machine, const ReluForward& op)
      : HostKernel{machine, operand_count(op)}, count_{machine.layout.floats(op.x)} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<ReluForward>(arguments.operands);
    const float* const x = floats(operands.in.x);
    float* const y = floats(operands.out.y);
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < count_; ++i) y[i] = x[i] < 0.F ? 0.F : x[i];
  }

  std::size_t count_;
};

class ReluBackwardKernel final : public HostKernel {
 public:
  ReluBackwardKernel(const Machine& machine, const ReluBackward& op)
      : HostKernel{machine, operand_count(op)}, count_{machine.layout.floats(op.x)} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<ReluBackward>(arguments.operands);
    const float* const y = floats(operands.in.y);
    const float* const dy = floats(operands.in.dy);
    float* const dx = floats(operands.out.dx);
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < count_; ++i) {
      const float slope = dy[i];
      dx[i] = y[i] > 0.F ? slope : 0.F;
    }
  }

  std::size_t count_;
};

// P(X <= x) of a standard normal X. The complement of the error function keeps small ones exact.
float normal_below(float x) { return 0.5F * std::erfc(-x * std::numbers::sqrt2_v<float> / 2); }

class GeluForwardKernel final : public HostKernel {
 public:
  GeluForwardKernel(const Machine& machine, const GeluForward& op)
      : HostKernel{machine, operand_count(op)}, count_{machine.layout.floats(op.x)} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<GeluForward>(arguments.operands);
    const float* const x = floats(operands.in.x);
    float* const y = floats(operands.out.y);
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < count_; ++i) y[i] = x[i] * normal_below(x[i]);
  }

  std::size_t count_;
};

class GeluBackwardKernel final : public HostKernel {
 public:
  GeluBackwardKernel(const Machine& machine, const GeluBackward& op)
      : HostKernel{machine, operand_count(op)}, count_{machine.layout.floats(op.x)} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<GeluBackward>(arguments.operands);
    const float* const x = floats(operands.in.x);
    const float* const dy = floats(operands.in.dy);
    float* const dx = floats(operands.out.dx);
    constexpr float kDensityAtZero =
        std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < count_; ++i) {
      const float density = kDensityAtZero * std::exp(-x[i] * x[i] / 2);
      dx[i] = dy[i] * (normal_below(x[i]) + x[i] * density);
    }
  }

  std::size_t count_;
};

class AddForwardKernel final : public HostKernel {
 public:
  AddForwardKernel(const Machine& machine, const AddForward& op)
      : HostKernel{machine, operand_count(op)},
        count_{machine.layout.floats(op.x)},
        relu_{op.relu} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of<AddForward>(arguments.operands);
    const float* const a = floats(operands.in.a);
    const float* const b = floats(operands.in.b);
    float* const y = floats(operands.out.y);
    if (relu_) {
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < count_; ++i) {
        const float sum = a[i] + b[i];
        y[i] = sum < 0.F ? 0.F : sum;
      }
    } else {
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < count_; ++i) y[i] = a[i] + b[i];
    }
  }

  std::size_t count_;
  bool relu_;
};

class AddGradientsKernel final : public HostKernel {
 public:
  AddGradientsKernel(const Machine& machine, const AddGradients& op)
      : HostKernel{machine, operand_count(op)}, op_{op}, count_{machine.layout.floats(op.x)} {}

 private:
  void compute(const KernelArguments& arguments) override {
    const auto operands = operands_of(op_, arguments.operands);
    const float* const a = floats(operands.in.a);
    const float* const b = floats(operands.in.b);
    float* const d = floats(operands.out.d);
    if (op_.relu) {
      const float* const y = floats(operands.in.y);
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < count_; ++i) {
        const float sum = a[i] + b[i];
        d[i] = y[i] > 0.F ? sum : 0.F;
      }
    } else {
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < count_; ++i) d[i] = a[i] + b[i];
    }
  }

  AddGradients op_;
  std::size_t count_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluForward& op) {
  return std::make_unique<ReluForwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const ReluBackward& op) {
  return std::make_unique<ReluBackwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluForward& op) {
  return std::make_unique<GeluForwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const GeluBackward& op) {
  return std::make_unique<GeluBackwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddForward& op) {
  return std::make_unique<AddForwardKernel>(machine, op);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const AddGradients& op) {
  return std::make_unique<AddGradientsKernel>(machine, op);
}

}  // namespace spillway::host
