#include "src/cuda/kernels/kernels.h"
#include "src/cuda/kernels/launch.cuh"
#include "src/cuda/kernels/sequences/token_matrix.h"

namespace spillway::cuda {
namespace {

// What is turned: so many pairs of channels of so many heads, from a row's first on.
struct Turn {
  std::size_t pairs;  // of a head
  std::size_t heads;
  double base;
  double direction;  // 1, or back -1

  [[nodiscard]] constexpr std::size_t channels() const { return 2 * pairs * heads; }
};

// A thread for each pair, and for each channel behind all pairs, which is copied. y may be x.
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

std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RotaryForward& op) {
  return turn_by(machine, op, 1);
}
std::unique_ptr<Kernel> make_kernel(const Machine& machine, const RotaryBackward& op) {
  return turn_by(machine, op, -1);
}

}  // namespace spillway::cuda
