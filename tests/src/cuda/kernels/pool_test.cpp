#include <array>
#include <tuple>

#include "nets/shape_inference.h"
#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {
namespace {

struct PoolCase {
  TensorShape x;
  nets::Pool pool;
};

class CudaPool : public DeviceRunner,
                 public ::testing::WithParamInterface<std::tuple<Precision, PoolCase>> {
 protected:
  CudaPool() : DeviceRunner{std::get<0>(GetParam())} {}

  [[nodiscard]] bool is_max() const { return pool_.kind == nets::PoolKind::kMax; }
  [[nodiscard]] Operand index() {
    return bytes(host().backend().saved_bytes(forward_), saved_bytes(machine(), forward_));
  }
  [[nodiscard]] std::vector<Operand*> operands(std::vector<Operand*> reads, Operand& where,
                                               Operand* last) const {
    if (is_max()) reads.push_back(&where);
    if (last != nullptr) reads.push_back(last);
    return reads;
  }

  const TensorShape x_ = std::get<1>(GetParam()).x;
  const nets::Pool pool_ = std::get<1>(GetParam()).pool;
  const TensorShape y_{.batch = x_.batch, .image = nets::infer_shape("pool", pool_, {x_.image})};
  const PoolForward forward_{.x = x_, .y = y_, .pool = pool_};
  const PoolBackward backward_{.x = x_, .y = y_, .pool = pool_};
  // Sums of as many terms as a window has, and of as many gradients as windows meet in a pixel, on
  // both sides.
  const double tolerance_ = 2 * host::sum_tolerance(pool_.kernel.height * pool_.kernel.width);
};

// Maxima are copies. With bfloat16 many numbers of a window are equal: the first counts, as on the
// host.
TEST_P(CudaPool, IsTheHostsBothWays) {
  Operand x = tensor(x_, random(x_.elements(), 1));
  Operand y = tensor(y_);
  Operand where = index();
  run(forward_, operands({&x, &y}, where, nullptr));
  expect_close(y_, y, is_max() ? 0 : tolerance_);
  if (is_max()) expect_equal(y_, y);

  Operand dy = tensor(y_, random(y_.elements(), 2));
  Operand dx = tensor(x_);
  run(backward_, operands({&dy}, where, &dx));
  expect_close(x_, dx, tolerance_);
}

TEST_P(CudaPool, GivesTheSameBitsAgainIndexIncluded) {
  Operand x = tensor(x_, random(x_.elements(), 1));
  Operand dy = tensor(y_, random(y_.elements(), 2));
  std::array y{tensor(y_), tensor(y_)};
  std::array where{index(), index()};
  std::array dx{tensor(x_), tensor(x_)};
  for (const std::size_t i : {0U, 1U}) {
    run_on_device(forward_, operands({&x, &y[i]}, where[i], nullptr));
    run_on_device(backward_, operands({&dy}, where[i], &dx[i]));
  }
  EXPECT_EQ(y[0].device.bytes(), y[1].device.bytes());
  EXPECT_EQ(where[0].device.bytes(), where[1].device.bytes());
  EXPECT_EQ(dx[0].device.bytes(), dx[1].device.bytes());
}

constexpr nets::PoolKind kMax = nets::PoolKind::kMax;
constexpr nets::PoolKind kAverage = nets::PoolKind::kAverage;

nets::Pool counted(nets::Extent kernel, nets::Extent stride) {
  return {.kind = kAverage,
          .kernel = kernel,
          .stride = stride,
          .padding = nets::square(1),
          .counts_padding = true};
}

nets::Pool rounded_up(nets::PoolKind kind, nets::Extent kernel, nets::Extent stride) {
  return {.kind = kind, .kernel = kernel, .stride = stride, .rounds_up = true};
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaPool,
    ::testing::Combine(
        kPrecisions,
        ::testing::Values(
            PoolCase{{3, {16, 6, 4}}, {kMax}},
            PoolCase{{1, {20, 5, 7}}, {kMax}},  // a row and a column left
            PoolCase{{3, {6, 7, 7}}, {kMax, nets::square(3), nets::square(2), nets::square(1)}},
            PoolCase{{1, {3, 6, 5}}, {kMax, {3, 2}, {2, 1}, {1, 0}}},
            PoolCase{{1, {33, 4, 4}}, {kMax, nets::square(3), nets::square(1), nets::square(1)}},
            PoolCase{{2, {8, 16, 16}}, {kMax, nets::square(16), nets::square(16)}},  // 256 taps
            PoolCase{{2, {8, 9, 9}},
                     {kMax, nets::square(2), nets::square(3)}},  // with gaps between
            PoolCase{{3, {10, 6, 4}}, {kAverage}},
            PoolCase{{1, {16, 5, 5}},
                     {kAverage, nets::square(3), nets::square(2), nets::square(1)}},
            PoolCase{{3, {3, 5, 4}}, {kAverage, {2, 3}, {1, 2}, {1, 1}}},
            PoolCase{{3, {20, 5, 3}}, {kAverage, {5, 3}, {5, 3}, nets::square(0)}},  // global
            PoolCase{{2, {20, 5, 5}}, counted(nets::square(3), nets::square(1))},
            PoolCase{{2, {3, 6, 5}}, counted({3, 2}, {2, 1})},
            PoolCase{{2, {16, 6, 8}}, rounded_up(kMax, nets::square(3), nets::square(2))},
            PoolCase{{1, {10, 7, 6}}, rounded_up(kMax, {2, 3}, {2, 3})},  // a rest of one row
            PoolCase{{2, {20, 6, 8}}, rounded_up(kAverage, nets::square(3), nets::square(2))})));

}  // namespace
}  // namespace spillway::cuda
