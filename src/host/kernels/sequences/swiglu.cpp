#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/exponential.h"
#include "src/host/kernels/sequences/token_rows.h"

namespace spillway::host {
namespace {

float sigmoid(float x) { return 1.F / (1.F + exponential(-x)); }

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SwigluForward& op) {
  const TokenRows from{machine.layout, op.x()};
  const TokenRows to{machine.layout, op.y};
  return kernel_of(machine, op, [from, to](const auto& operands) {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < to.count; ++i) {
      const float* const gate = floats(operands.in.x) + i * from.stride;
      const float* const value = gate + to.channels;
      float* const y = floats(operands.out.y) + i * to.stride;
#pragma omp simd
      for (std::size_t c = 0; c < to.channels; ++c) y[c] = gate[c] * sigmoid(gate[c]) * value[c];
      to.zero_padding(y);
    }
  });
}

// With s the sigmoid of g: dv = dy g s, and dg = dy v s (1 + g (1 - s)).
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const SwigluBackward& op) {
  const TokenRows from{machine.layout, op.forward().x()};
  const TokenRows to{machine.layout, op.y};
  return kernel_of(machine, op, [from, to](const auto& operands) {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < to.count; ++i) {
      const float* const gate = floats(operands.in.x) + i * from.stride;
      const float* const value = gate + to.channels;
      const float* const dy = floats(operands.in.dy) + i * to.stride;
      float* const dgate = floats(operands.out.dx) + i * from.stride;
      float* const dvalue = dgate + to.channels;
#pragma omp simd
      for (std::size_t c = 0; c < to.channels; ++c) {
        const float s = sigmoid(gate[c]);
        dvalue[c] = dy[c] * gate[c] * s;
        dgate[c] = dy[c] * value[c] * s * (1.F + gate[c] * (1.F - s));
      }
      from.zero_padding(dgate);
    }
  });
}

}  // namespace spillway::host
