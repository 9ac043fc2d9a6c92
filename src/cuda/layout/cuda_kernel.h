#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <utility>

#include "src/cuda/layout/kernel_context.h"
#include "src/ops/backend.h"
#include "um/error.h"

namespace spillway::cuda {

/// A kernel that enqueues its work on the machine's stream and returns.
class CudaKernel : public Kernel {
 public:
  void run(const KernelArguments& arguments) final {
    um::expects(arguments.operands.size() == operands_, "as many operands as the operation lists");
    enqueue(arguments);
  }

 protected:
  CudaKernel(const Machine& machine, std::size_t operands)
      : machine_{machine}, operands_{operands} {}

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] cudaStream_t stream() const { return machine_.stream; }

 private:
  virtual void enqueue(const KernelArguments& arguments) = 0;

  Machine machine_;
  std::size_t operands_;
};

/// A kernel that only calls `body` with the operands of `Op`, and with the arguments of the call
/// where it takes them.
template <class Op, class Body>
class FunctionKernel final : public CudaKernel {
 public:
  FunctionKernel(const Machine& machine, const Op& op, Body body)
      : CudaKernel{machine, operand_count(op)}, op_{op}, body_{std::move(body)} {}

 private:
  void enqueue(const KernelArguments& arguments) override {
    const Operands<Op> operands = operands_of(op_, arguments.operands);
    if constexpr (std::invocable<Body&, const Operands<Op>&>) {
      body_(operands);
    } else {
      body_(operands, arguments);
    }
  }

  Op op_;
  Body body_;
};
template <class Op, class Body>
[[nodiscard]] std::unique_ptr<Kernel> kernel_of(const Machine& machine, const Op& op, Body body) {
  return std::make_unique<FunctionKernel<Op, Body>>(machine, op, std::move(body));
}

}  // namespace spillway::cuda
