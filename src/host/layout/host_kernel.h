#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "src/host/layout/layout.h"
#include "src/host/layout/parameter_layout.h"
#include "src/host/layout/threads.h"
#include "src/ops/backend.h"
#include "um/error.h"

namespace spillway::host {

/// The engine, layout and number of threads that kernels are made for.
struct Machine {
  dnnl::engine engine;
  Layout layout;
  std::size_t threads;
};

/// A kernel that always runs on the backend's number of threads.
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

/// Returns a kernel that calls `body` on the machine's number of threads (FunctionKernel).
template <class Op, class Body>
[[nodiscard]] std::unique_ptr<Kernel> kernel_of(const Machine& machine, const Op& op, Body body) {
  return spillway::kernel_of(op, [threads = machine.threads, body = std::move(body)](
                                     const auto& operands, const auto& arguments) mutable {
    const TeamSize team{threads};
    if constexpr (std::invocable<Body&, decltype(operands)>) {
      body(operands);
    } else {
      body(operands, arguments);
    }
  });
}

/// Like kernel_of(), but first passes the ElementsOf of the operation's tensors to `body`.
template <class Op, class Body>
[[nodiscard]] std::unique_ptr<Kernel> element_kernel_of(const Machine& machine, const Op& op,
                                                        Body body) {
  return with_elements(machine.layout, [&](auto elements) {
    return kernel_of(
        machine, op, [elements, body](const auto& operands, const auto& arguments) mutable {
          if constexpr (std::invocable<Body&, decltype(elements), decltype(operands)>) {
            body(elements, operands);
          } else {
            body(elements, operands, arguments);
          }
        });
  });
}

/// Returns an operand as floats.
[[nodiscard]] inline float* floats(std::byte* operand) { return reinterpret_cast<float*>(operand); }

enum class Direction { kForward, kBackwardData, kBackwardWeights };

/// One of the three primitives of a layer with weights.
struct WeightedPrimitive {
  dnnl::primitive_desc primitive;
  Direction direction;
  Desc block_weights;  ///< the weights' format in the parameter block
  ParameterParts parts;
};

/// Returns true if oneDNN only has its reference implementation, which is hundreds of times slower
/// than the others.
[[nodiscard]] bool is_reference(const WeightedPrimitive& weighted);

/// Returns the bytes for the scratchpad, and for reordered weights if the primitive's format
/// differs from the block's.
[[nodiscard]] um::Bytes workspace_of(const Machine& machine, const WeightedPrimitive& weighted);

/// Operands: x, parameters -> y; dy, parameters -> dx; or x, dy -> dparameters.
[[nodiscard]] std::unique_ptr<Kernel> make_kernel(const Machine& machine,
                                                  const WeightedPrimitive& weighted);

}  // namespace spillway::host
