#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include "src/ops/backend.h"
#include "um/error.h"

namespace spillway {

/// A kernel that only calls `body` with the operands of `Op`, and with the arguments of the call
/// where it takes them.
template <class Op, class Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Op op, Body body) : op_{std::move(op)}, body_{std::move(body)} {}

  void run(const KernelArguments& arguments) override {
    um::expects(arguments.operands.size() == operand_count(op_),
                "as many operands as the operation lists");
    const Operands<Op> operands = operands_of(op_, arguments.operands);
    if constexpr (std::invocable<Body&, const Operands<Op>&>) {
      body_(operands);
    } else {
      body_(operands, arguments);
    }
  }

 private:
  Op op_;
  Body body_;
};

/// A kernel that calls `body`, of which it has a copy that lives as long as it does.
///
/// Requires: run() gets as many operands as `op` has.
template <class Op, class Body>
[[nodiscard]] std::unique_ptr<Kernel> kernel_of(const Op& op, Body body) {
  return std::make_unique<FunctionKernel<Op, Body>>(op, std::move(body));
}

/// A kernel that only calls `body` with the addresses of all operands.
template <class Body>
class OperandsKernel final : public Kernel {
 public:
  explicit OperandsKernel(Body body) : body_{std::move(body)} {}
  void run(const KernelArguments& arguments) override { body_(arguments.operands); }

 private:
  Body body_;
};

}  // namespace spillway
