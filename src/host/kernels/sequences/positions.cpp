#include <algorithm>
#include <memory>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/token_rows.h"
#include "src/ops/rotary_angles.h"

namespace spillway::host {

// The row after all positions is the first segment's.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PositionsForward& op) {
  const TokenRows rows{machine.layout, op.x};
  const std::size_t segments = parts_of(machine.layout, op.parameters).second_begin;
  const bool has_segments = op.parameters.segments > 0;
  const std::size_t tokens = op.x.image.height;
  return element_kernel_of(machine, op, [=](auto elements, const auto& operands) {
    const auto* const x = elements(operands.in.x);
    const float* const table = floats(operands.in.parameters);
    auto* const y = elements(operands.out.y);
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < rows.count; ++i) {
      const auto* const from = x + i * rows.stride;
      const float* const position = table + i % tokens * rows.stride;
      auto* const to = y + i * rows.stride;
      if (has_segments) {
        const float* const segment = table + segments;
        for (std::size_t c = 0; c < rows.stride; ++c) to[c] = from[c] + position[c] + segment[c];
      } else {
        for (std::size_t c = 0; c < rows.stride; ++c) to[c] = from[c] + position[c];
      }
    }
  });
}

// The first segment's gradient is the sum of the gradients of all positions.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PositionsBackward& op) {
  const TokenRows rows{machine.layout, op.x};
  const ParameterParts parts = parts_of(machine.layout, op.parameters);
  const auto add = [rows, parts, op](auto elements, const auto& operands) {
    const std::size_t tokens = op.x.image.height;
    const auto* const dy = elements(operands.in.dy);
    float* const table = floats(operands.out.dparameters);
    std::fill(table + tokens * rows.stride, table + parts.total, 0.F);
#pragma omp parallel for schedule(static)
    for (std::size_t t = 0; t < tokens; ++t) {
      float* const sum = table + t * rows.stride;
      std::fill_n(sum, rows.stride, 0.F);
      for (std::size_t n = 0; n < op.x.batch; ++n) {
        const auto* const slope = dy + (n * tokens + t) * rows.stride;
        for (std::size_t c = 0; c < rows.stride; ++c) sum[c] += slope[c];
      }
    }
    if (op.parameters.segments == 0) return;
    float* const segment = table + parts.second_begin;
    for (std::size_t t = 0; t < tokens; ++t) {
      const float* const position = table + t * rows.stride;
      for (std::size_t c = 0; c < rows.stride; ++c) segment[c] += position[c];
    }
  };
  return element_kernel_of(machine, op, add);
}

namespace {

// Returns the only operand: x or dy, y or dx.
template <class Names>
std::byte* first_of(const Names& names) {
  const auto [only] = names;
  return only;
}

// Rotates by the angles; back with `direction` -1. Forward reads x and writes y, backward dy and
// dx.
template <class Op>
std::unique_ptr<Kernel> turn(const Machine& machine, const Op& op, float direction) {
  const TokenRows rows{machine.layout, op.x};
  const std::size_t pairs = op.heads.width(op.x) / 2;
  const std::size_t turned = op.heads.heads + op.heads.kv_heads;
  // shared: kernels are copied
  const auto angles = std::make_shared<const RotaryAngles>(op.x.image.height, pairs, op.base);
  const std::size_t tokens = op.x.image.height;
  return element_kernel_of(machine, op, [=](auto elements, const auto& operands) {
    const auto* const from = elements(first_of(operands.in));
    auto* const to = elements(first_of(operands.out));
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < rows.count; ++i) {
      const float* const cosines = angles->cosines.data() + i % tokens * pairs;
      const float* const sines = angles->sines.data() + i % tokens * pairs;
      const auto* const x = from + i * rows.stride;
      auto* const y = to + i * rows.stride;
      for (std::size_t head = 0; head < turned; ++head) {
        const std::size_t low = head * 2 * pairs;
        const std::size_t high = low + pairs;
        for (std::size_t j = 0; j < pairs; ++j) {
          const float sine = direction * sines[j];
          const float a = x[low + j];
          const float b = x[high + j];
          y[low + j] = a * cosines[j] - b * sine;
          y[high + j] = b * cosines[j] + a * sine;
        }
      }
      if (x != y) std::copy(x + turned * 2 * pairs, x + rows.stride, y + turned * 2 * pairs);
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RotaryForward& op) {
  return turn(machine, op, 1.F);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RotaryBackward& op) {
  return turn(machine, op, -1.F);
}

}  // namespace spillway::host
