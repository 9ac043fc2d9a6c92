#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/sequences/token_matrix.h"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

// `segment`: the row that is added to all tokens; null: none. y may be x.
template <class T>
__global__ void add_positions(const T* x, const float* table, const float* segment, T* y,
                              TokenMatrix m) {
  for (std::size_t i = first_item(); i < m.elements(); i += item_stride()) {
    const std::size_t channel = i % m.stride;
    const std::size_t position = i / m.stride % m.tokens;
    float sum = load_one(x, i) + table[position * m.stride + channel];
    if (segment != nullptr) sum += segment[channel];
    store_one(y, i, sum);
  }
}

// Of each position the sum over the batch; zero behind those that tokens have.
template <class T>
__global__ void sum_positions(const T* dy, float* table, std::size_t count, TokenMatrix m) {
  const std::size_t used = m.tokens * m.stride;
  for (std::size_t i = first_item(); i < count; i += item_stride()) {
    float sum = 0.F;
    for (std::size_t at = i; i < used && at < m.elements(); at += used) sum += load_one(dy, at);
    table[i] = sum;
  }
}

// The gradient of the first segment: the sum of those of all positions, in their order.
__global__ void sum_segment(const float* table, float* segment, TokenMatrix m) {
  for (std::size_t c = first_item(); c < m.stride; c += item_stride()) {
    float sum = 0.F;
    for (std::size_t t = 0; t < m.tokens; ++t) sum += table[t * m.stride + c];
    segment[c] = sum;
  }
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PositionsForward& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  return kernel_of(op, [machine, op, layout, m = token_matrix(op.x)](const auto& operands) {
    const float* const table = tensor<const float>(operands.in.parameters);
    const float* const segment =
        op.parameters.segments > 0 ? table + layout.weight_count() : nullptr;
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, m.elements(), add_positions<T>, tensor<const T>(operands.in.x), table,
             segment, tensor<T>(operands.out.y), m);
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PositionsBackward& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  return kernel_of(op, [machine, op, layout, m = token_matrix(op.x)](const auto& operands) {
    float* const table = tensor<float>(operands.out.dparameters);
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, layout.float_count(), sum_positions<T>,
             tensor<const T>(operands.in.dy), table, layout.float_count(), m);
    });
    if (op.parameters.segments == 0) return;
    launch(machine.stream, m.stride, sum_segment, table, table + layout.weight_count(), m);
  });
}

}  // namespace spillway::cuda
