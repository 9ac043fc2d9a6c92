#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/sequences/token_matrix.h"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

// Whether a number is a row of a table. A NaN is not.
__device__ bool is_row(float token, std::size_t vocabulary) {
  return token >= 0.F && token < static_cast<float>(vocabulary);
}

template <class T>
__global__ void embed(const float* tokens, const float* table, T* y, TokenMatrix m,
                      std::size_t vocabulary) {
  for (std::size_t i = first_item(); i < m.elements(); i += item_stride()) {
    const std::size_t channel = i % m.stride;
    const float token = tokens[i / m.stride];
    float value = channel < m.channels ? NAN : 0.F;
    if (is_row(token, vocabulary)) {
      value = table[static_cast<std::size_t>(token) * m.stride + channel];
    }
    store_one(y, i, value);
  }
}

__global__ void clear(float* table, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += item_stride()) table[i] = 0.F;
}

// A block for each token: the first of its number adds up the gradients of all of that number, in
// their order.
template <class T>
__global__ void add_rows(const float* tokens, const T* dy, float* table, TokenMatrix m,
                         std::size_t vocabulary) {
  for (std::size_t i = blockIdx.x; i < m.rows; i += gridDim.x) {
    const float token = tokens[i];
    bool is_first = is_row(token, vocabulary);
    for (std::size_t j = 0; j < i && is_first; ++j) is_first = tokens[j] != token;
    if (!is_first) continue;
    float* const row = table + static_cast<std::size_t>(token) * m.stride;
    for (std::size_t c = threadIdx.x; c < m.channels; c += blockDim.x) {
      float sum = row[c];
      for (std::size_t j = i; j < m.rows; ++j) {
        if (tokens[j] == token) sum += load_one(dy, j * m.stride + c);
      }
      row[c] = sum;
    }
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const EmbeddingForward& op) {
  return kernel_of(op, [machine, op, m = token_matrix(op.y)](const auto& operands) {
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, m.elements(), embed<T>, tensor<const float>(operands.in.tokens),
             tensor<const float>(operands.in.parameters), tensor<T>(operands.out.y), m,
             op.vocabulary);
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const EmbeddingBackward& op) {
  const ParameterLayout layout{machine.precision, op.forward().parameters()};
  const auto add = [machine, op, layout, m = token_matrix(op.y)](const auto& operands) {
    float* const table = tensor<float>(operands.out.dparameters);
    if (!op.accumulates) {
      launch(machine.stream, layout.float_count(), clear, table, layout.float_count());
    }
    with_element(machine.precision, [&]<class T>(T) {
      const std::size_t blocks = std::min(m.rows, kMaxBlocks);
      enqueue(machine.stream,
              {.blocks = dim3{static_cast<unsigned>(blocks)}, .threads = dim3{kThreads}},
              add_rows<T>, tensor<const float>(operands.in.tokens), tensor<const T>(operands.in.dy),
              table, m, op.vocabulary);
    });
  };
  return kernel_of(op, add);
}

}  // namespace spillway::cuda
