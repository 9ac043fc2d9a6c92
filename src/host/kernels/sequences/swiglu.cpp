#include <cstddef>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/token_rows.h"
#include "um/machine/wide.h"

namespace spillway::host {
namespace {

float sigmoid(float x) { return 1.F / (1.F + exponential(-x)); }

template <class T>
SPILLWAY_WIDE void gate_row(const T* gate, const T* value, T* y, std::size_t count) {
#pragma omp simd
  for (std::size_t c = 0; c < count; ++c) y[c] = gate[c] * sigmoid(gate[c]) * value[c];
}

// With s = sigmoid(g): dv = dy g s, and dg = dy v s (1 + g (1 - s)).
template <class T>
SPILLWAY_WIDE void differentiate_gates(const T* gate, const T* value, const T* dy, T* dgate,
                                       T* dvalue, std::size_t count) {
#pragma omp simd
  for (std::size_t c = 0; c < count; ++c) {
    const float g = gate[c];
    const float s = sigmoid(g);
    dvalue[c] = dy[c] * g * s;
    dgate[c] = dy[c] * value[c] * s * (1.F + g * (1.F - s));
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SwigluForward& op) {
  const TokenRows from{machine.layout, op.x()};
  const TokenRows to{machine.layout, op.y};
  return element_kernel_of(machine, op, [from, to](auto elements, const auto& operands) {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < to.count; ++i) {
      const auto* const gate = elements(operands.in.x) + i * from.stride;
      const auto* const value = gate + to.channels;
      auto* const y = elements(operands.out.y) + i * to.stride;
      gate_row(gate, value, y, to.channels);
      to.zero_padding(y);
    }
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SwigluBackward& op) {
  const TokenRows from{machine.layout, op.forward().x()};
  const TokenRows to{machine.layout, op.y};
  return element_kernel_of(machine, op, [from, to](auto elements, const auto& operands) {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < to.count; ++i) {
      const auto* const gate = elements(operands.in.x) + i * from.stride;
      const auto* const value = gate + to.channels;
      const auto* const dy = elements(operands.in.dy) + i * to.stride;
      auto* const dgate = elements(operands.out.dx) + i * from.stride;
      auto* const dvalue = dgate + to.channels;
      differentiate_gates(gate, value, dy, dgate, dvalue, to.channels);
      from.zero_padding(dgate);
    }
  });
}

}  // namespace spillway::host
