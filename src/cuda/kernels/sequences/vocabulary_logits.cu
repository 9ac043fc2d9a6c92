#include <cstdint>
#include <utility>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/sequences/token_matrix.h"
#include "src/cuda/kernels/warp_sum.cuh"
#include "src/cuda/layout/step_numbers.h"

namespace spillway::cuda {
namespace {

// A warp makes a logit at a time. `bias` may be null. A position behind the last token makes NaNs:
// nothing on the device can complain.
template <class T>
__global__ void multiply_rows(const T* x, const float* table, const float* bias,
                              const std::uint64_t* step_position, TokenMatrix m,
                              std::size_t vocabulary, float* logits) {
  const std::uint64_t position = *step_position;
  const auto lane = static_cast<std::size_t>(threadIdx.x % kWarp);
  const std::size_t count = m.rows / m.tokens * vocabulary;
  for (std::size_t i = first_item() / kWarp; i < count; i += item_stride() / kWarp) {
    const std::size_t sample = i / vocabulary;
    const std::size_t v = i % vocabulary;
    float sum = 0.F;
    if (position < m.tokens) {
      const std::size_t row = (sample * m.tokens + position) * m.stride;
      for (std::size_t c = lane; c < m.channels; c += kWarp) {
        sum += load_one(x, row + c) * table[v * m.stride + c];
      }
    } else {
      sum = NAN;
    }
    sum = warp_sum(sum);
    if (lane == 0) logits[i] = bias == nullptr ? sum : sum + bias[v];
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const VocabularyLogits& op) {
  auto position = machine.numbers->add(
      [](const StepContext& context) { return std::uint64_t{context.position}; });
  auto multiply = [machine, op, m = token_matrix(op.geometry.x),
                   position = std::move(position)](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, op.logit_count() * kWarp, multiply_rows<T>,
             tensor<const T>(operands.in.x), tensor<const float>(operands.in.table),
             op.geometry.bias ? tensor<const float>(operands.in.bias) : nullptr, position.get(), m,
             op.geometry.vocabulary, tensor<float>(operands.out.logits));
    });
  };
  return kernel_of(op, std::move(multiply));
}

}  // namespace spillway::cuda
