#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "src/host/layout/layout.h"
#include "src/host/layout/threads.h"
#include "src/ops/backend.h"
#include "um/error.h"

namespace spillway::host {

/// What kernels are made for.
struct Machine {
  dnnl::engine engine;
  Layout layout;
  std::size_t threads;
};

/// A kernel that runs on the backend's number of threads, whoever calls it.
class HostKernel : public Kernel {
 public:
  void run(const KernelArguments& arguments) final {
    um::expects(arguments.operands.size() == operands_, "as many operands as the operation lists");
    const TeamSize team{threads_};
    compute(arguments);
  }

 protected:
  HostKernel(const Machine& machine, std::size_t operands)
      : threads_{machine.threads}, operands_{operands} {}

 private:
  virtual void compute(const KernelArguments& arguments) = 0;

  std::size_t threads_;
  std::size_t operands_;
};

/// A kernel that only calls `body` with the operands of `Op`, and with the arguments of the call
/// where it takes them.
template <class Op, class Body>
class FunctionKernel final : public HostKernel {
 public:
  FunctionKernel(const Machine& machine, const Op& op, Body body)
      : HostKernel{machine, operand_count(op)}, op_{op}, body_{std::move(body)} {}

 private:
  void compute(const KernelArguments& arguments) override {
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

/// An operand as floats.
[[nodiscard]] inline float* floats(std::byte* operand) { return reinterpret_cast<float*>(operand); }

}  // namespace spillway::host
