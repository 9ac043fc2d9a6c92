#include "src/cuda/kernels/channel_tile.cuh"
#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"

namespace spillway::cuda {
namespace {

__device__ void add_to(Group& sum, const Group& other) {
#pragma unroll
  for (int l = 0; l < kGroupLanes; ++l) sum.lanes[l] += other.lanes[l];
}

// Each warp handles one row at a time. `segment` is a row that is added to all tokens, or null. y
// may be x.
template <class T>
__global__ void add_positions(const T* x, const float* table, const float* segment, T* y,
                              TokenMatrix m) {
  const std::size_t groups = m.stride / kGroupLanes;
  for (std::size_t row = first_item() / kWarp; row < m.rows; row += item_stride() / kWarp) {
    const std::size_t position = row % m.tokens;
    for (std::size_t g = threadIdx.x % kWarp; g < groups; g += kWarp) {
      Group sum = load_group(x, row * groups + g);
      add_to(sum, load_group(table, position * groups + g));
      if (segment != nullptr) add_to(sum, load_group(segment, g));
      store_group(y, row * groups + g, sum);
    }
  }
}

// Sums each position over the batch; positions that no token uses get zero. `count` groups.
template <class T>
__global__ void sum_positions(const T* dy, float* table, std::size_t count, TokenMatrix m) {
  const std::size_t used = m.tokens * m.stride / kGroupLanes;
  const std::size_t all = m.elements() / kGroupLanes;
  for (std::size_t i = first_item(); i < count; i += item_stride()) {
    Group sum{};
    if (i < used) {
#pragma unroll 4
      for (std::size_t at = i; at < all; at += used) add_to(sum, load_group(dy, at));
    }
    store_group(table, i, sum);
  }
}

// The first segment's gradient is the sum of the gradients of all positions, in order.
__global__ void sum_segment(const float* table, float* segment, TokenMatrix m) {
  for (std::size_t c = first_item(); c < m.stride; c += item_stride()) {
    float sum = 0.F;
    for (std::size_t t = 0; t < m.tokens; ++t) sum += table[t * m.stride + c];
    segment[c] = sum;
  }
}

// The part of a row to rotate: the first `heads` heads with `pairs` pairs of channels each.
struct Turn {
  std::size_t pairs;  // per head
  std::size_t heads;
  double base;
  double direction;  // 1, or -1 to rotate back

  [[nodiscard]] constexpr std::size_t channels() const { return 2 * pairs * heads; }
};

// One thread per pair, and one per channel after all pairs, which is copied. y may be x.
template <class T>
__global__ void turn_pairs(const T* x, T* y, Turn turn, TokenMatrix m) {
  const std::size_t all_pairs = turn.pairs * turn.heads;
  const std::size_t items = all_pairs + m.stride - turn.channels();
  for (std::size_t i = first_item(); i < m.rows * items; i += item_stride()) {
    const std::size_t row = i / items;
    const std::size_t item = i % items;
    if (item >= all_pairs) {
      const std::size_t at = row * m.stride + turn.channels() + item - all_pairs;
      store_one(y, at, load_one(x, at));
      continue;
    }
    const std::size_t j = item % turn.pairs;
    const std::size_t low = row * m.stride + item / turn.pairs * 2 * turn.pairs + j;
    const std::size_t high = low + turn.pairs;
    const double rate = pow(turn.base, -static_cast<double>(j) / static_cast<double>(turn.pairs));
    const double angle = static_cast<double>(row % m.tokens) * rate;
    const auto cosine = static_cast<float>(cos(angle));
    const auto sine = static_cast<float>(turn.direction * sin(angle));
    const float a = load_one(x, low);
    const float b = load_one(x, high);
    store_one(y, low, a * cosine - b * sine);
    store_one(y, high, b * cosine + a * sine);
  }
}

template <class Op>
std::unique_ptr<Kernel> turn_by(const Machine& machine, const Op& op, double direction) {
  const Turn turn{.pairs = op.heads.width(op.x) / 2,
                  .heads = op.heads.heads + op.heads.kv_heads,
                  .base = static_cast<double>(op.base),
                  .direction = direction};
  return kernel_of(op, [machine, turn, m = token_matrix(op.x)](const auto& operands) {
    const auto [from] = operands.in;
    const auto [to] = operands.out;
    std::byte* const x = from;
    std::byte* const y = to;
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, m.rows * (m.stride - turn.channels() / 2), turn_pairs<T>,
             tensor<const T>(x), tensor<T>(y), turn, m);
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PositionsForward& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  return kernel_of(op, [machine, op, layout, m = token_matrix(op.x)](const auto& operands) {
    const float* const table = tensor<const float>(operands.in.parameters);
    const float* const segment =
        op.parameters.segments > 0 ? table + layout.weight_count() : nullptr;
    with_element(machine.precision, [&]<class T>(T) {
      launch(machine.stream, m.rows * kWarp, add_positions<T>, tensor<const T>(operands.in.x),
             table, segment, tensor<T>(operands.out.y), m);
    });
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const PositionsBackward& op) {
  const ParameterLayout layout{machine.precision, op.parameters};
  return kernel_of(op, [machine, op, layout, m = token_matrix(op.x)](const auto& operands) {
    float* const table = tensor<float>(operands.out.dparameters);
    with_element(machine.precision, [&]<class T>(T) {
      const std::size_t groups = layout.float_count() / kGroupLanes;
      launch(machine.stream, groups, sum_positions<T>, tensor<const T>(operands.in.dy), table,
             groups, m);
    });
    if (op.parameters.segments == 0) return;
    launch(machine.stream, m.stride, sum_segment, table, table + layout.weight_count(), m);
  });
}

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RotaryForward& op) {
  return turn_by(machine, op, 1);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RotaryBackward& op) {
  return turn_by(machine, op, -1);
}

}  // namespace spillway::cuda
