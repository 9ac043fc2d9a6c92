#include <cstddef>

#include "src/host/kernels/kernels.h"
#include "src/host/kernels/sequences/token_rows.h"
#include "src/ops/function_kernel.h"

namespace spillway::host {
namespace {

// The sum of the products of two rows. One thread makes it, so that its bits are the same with any
// number of threads.
template <class T>
float product_of_rows(const T* a, const float* b, std::size_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t c = 0; c < count; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const VocabularyLogits& op) {
  const TokenRows rows{machine.layout, op.geometry.x};
  return element_kernel_of(
      machine, op, [op, rows](auto elements, const auto& operands, const auto& arguments) {
        const std::size_t tokens = rows.count / op.geometry.x.batch;
        const std::size_t position = arguments.context->position;
        um::expects(position < tokens, "a token of the samples");
        const float* const table = floats(operands.in.table);
        const float* const bias = op.geometry.bias ? floats(operands.in.bias) : nullptr;
        const std::size_t vocabulary = op.geometry.vocabulary;
        for (std::size_t n = 0; n < op.geometry.x.batch; ++n) {
          const auto* const x = elements(operands.in.x) + (n * tokens + position) * rows.stride;
          float* const logits = floats(operands.out.logits) + n * vocabulary;
#pragma omp parallel for schedule(static)
          for (std::size_t v = 0; v < vocabulary; ++v) {
            const float own = bias == nullptr ? 0.F : bias[v];
            logits[v] = product_of_rows(x, table + v * rows.stride, rows.channels) + own;
          }
        }
      });
}

}  // namespace spillway::host
