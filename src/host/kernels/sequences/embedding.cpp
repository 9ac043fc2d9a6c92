#include <algorithm>
#include <limits>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/token_rows.h"

namespace spillway::host {
namespace {

// Columns that a thread adds up at a time.
constexpr std::size_t kGradientColumns = 64;

// Whether a number is a row of a table. A NaN is not.
bool is_row(float token, std::size_t vocabulary) {
  return token >= 0.F && token < static_cast<float>(vocabulary);
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const EmbeddingForward& op) {
  const TokenRows rows{machine.layout, op.y};
  const std::size_t vocabulary = op.vocabulary;
  return element_kernel_of(machine, op, [rows, vocabulary](auto elements, const auto& operands) {
    const float* const tokens = floats(operands.in.tokens);
    const float* const table = floats(operands.in.parameters);
    auto* const y = elements(operands.out.y);
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < rows.count; ++i) {
      auto* const row = y + i * rows.stride;
      if (is_row(tokens[i], vocabulary)) {
        std::copy_n(table + static_cast<std::size_t>(tokens[i]) * rows.stride, rows.stride, row);
      } else {
        std::fill_n(row, rows.channels, std::numeric_limits<float>::quiet_NaN());
        rows.zero_padding(row);
      }
    }
  });
}

// Each thread adds up columns of its own over all tokens, in their order, whatever the number of
// threads.
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const EmbeddingBackward& op) {
  const TokenRows rows{machine.layout, op.y};
  const std::size_t total = parts_of(machine.layout, op.forward().parameters()).total;
  const auto add = [rows, total, op](auto elements, const auto& operands) {
    const float* const tokens = floats(operands.in.tokens);
    const auto* const dy = elements(operands.in.dy);
    float* const table = floats(operands.out.dparameters);
    if (!op.accumulates) {
#pragma omp parallel for simd schedule(static)
      for (std::size_t i = 0; i < total; ++i) table[i] = 0.F;
    }
#pragma omp parallel for schedule(static)
    for (std::size_t begin = 0; begin < rows.channels; begin += kGradientColumns) {
      const std::size_t end = std::min(begin + kGradientColumns, rows.channels);
      for (std::size_t i = 0; i < rows.count; ++i) {
        if (!is_row(tokens[i], op.vocabulary)) continue;
        float* const sum = table + static_cast<std::size_t>(tokens[i]) * rows.stride;
        const auto* const slope = dy + i * rows.stride;
        for (std::size_t c = begin; c < end; ++c) sum[c] += slope[c];
      }
    }
  };
  return element_kernel_of(machine, op, add);
}

}  // namespace spillway::host
