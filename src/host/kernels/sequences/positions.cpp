#include <algorithm>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/token_rows.h"

namespace spillway::host {

// The first segment is the row behind all positions.
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

// The gradient of the first segment is the sum of those of all positions.
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

}  // namespace spillway::host
