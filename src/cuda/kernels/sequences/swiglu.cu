#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/layout.h"

namespace spillway::cuda {
namespace {

__device__ float sigmoid(float x) { return 1.F / (1.F + expf(-x)); }

template <class T>
__global__ void gate(const T* x, T* y, TokenMatrix from, TokenMatrix to) {
  for (std::size_t i = first_item(); i < to.elements(); i += item_stride()) {
    const std::size_t channel = i % to.stride;
    float value = 0.F;
    if (channel < to.channels) {
      const std::size_t at = i / to.stride * from.stride + channel;
      const float gate = load_one(x, at);
      value = gate * sigmoid(gate) * load_one(x, at + to.channels);
    }
    store_one(y, i, value);
  }
}

// With s = sigmoid(g): dv = dy g s, and dg = dy v s (1 + g (1 - s)).
template <class T>
__global__ void gate_backward(const T* x, const T* dy, T* dx, TokenMatrix from, TokenMatrix to) {
  for (std::size_t i = first_item(); i < from.elements(); i += item_stride()) {
    const std::size_t row = i / from.stride;
    const std::size_t channel = i % from.stride;
    float value = 0.F;
    if (channel < from.channels) {
      const bool is_gate = channel < to.channels;
      const std::size_t pair = is_gate ? channel : channel - to.channels;
      const float gate = load_one(x, row * from.stride + pair);
      const float slope = load_one(dy, row * to.stride + pair);
      const float s = sigmoid(gate);
      value = is_gate ? slope * load_one(x, i + to.channels) * s * (1.F + gate * (1.F - s))
                      : slope * gate * s;
    }
    store_one(dx, i, value);
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SwigluForward& op) {
  const TokenMatrix from = token_matrix(op.x());
  return kernel_of(op, [machine, from, to = token_matrix(op.y)](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, to.elements(), gate<T>, tensor<const T>(operands.in.x),
             tensor<T>(operands.out.y), from, to);
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SwigluBackward& op) {
  const TokenMatrix from = token_matrix(op.forward().x());
  return kernel_of(op, [machine, from, to = token_matrix(op.y)](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, from.elements(), gate_backward<T>, tensor<const T>(operands.in.x),
             tensor<const T>(operands.in.dy), tensor<T>(operands.out.dx), from, to);
    });
  });
}

}  // namespace spillway::cuda
