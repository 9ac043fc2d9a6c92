#include <array>
#include <cmath>
#include <ostream>

#include "nets/shape_inference.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

struct PoolCase {
  TensorShape x;
  nets::Pool pool;
};

// Gtest looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const PoolCase& c, std::ostream* out) {
  *out << c.x.batch << " x " << c.x.image.channels << "x" << c.x.image.height << "x"
       << c.x.image.width << " by " << c.pool.kernel.height << "x" << c.pool.kernel.width
       << (c.pool.kind == nets::PoolKind::kMax ? " maximum" : " average");
}

class Pool : public KernelRunner, public ::testing::WithParamInterface<PoolCase> {
 protected:
  [[nodiscard]] bool is_max() const { return forward_.pool.kind == nets::PoolKind::kMax; }
  void run_forward(Block& x, Block& y, Block& index) {
    std::vector<Block*> operands{&x, &y};
    if (is_max()) operands.push_back(&index);
    run(forward_, operands);
  }
  void run_backward(Block& dy, Block& index, Block& dx) {
    std::vector<Block*> operands{&dy};
    if (is_max()) operands.push_back(&index);
    operands.push_back(&dx);
    run(PoolBackward{.x = forward_.x, .y = forward_.y, .pool = forward_.pool}, operands);
  }
  [[nodiscard]] Block index() { return saved_by(forward_); }
  // On the host oneDNN adds up what windows give to a pixel in the tensor: each of these sums, of
  // shares of numbers up to 1 and so seldom above a half, is rounded to a bfloat16.
  [[nodiscard]] double rounding() const {
    if (has_float_tensors() || kIsCuda) return 0;
    const nets::Extent& kernel = forward_.pool.kernel;
    return static_cast<double>(kernel.height * kernel.width) * std::ldexp(0.5, -9);
  }

  const PoolForward forward_{
      .x = GetParam().x,
      .y = {.batch = GetParam().x.batch,
            .image = nets::infer_shape("pool", GetParam().pool, {GetParam().x.image})},
      .pool = GetParam().pool};
  const Values x_ = random_values(forward_.x.elements(), 1);
  const Values dy_ = random_values(forward_.y.elements(), 2);
  // Sums of as many terms as a window has, and of as many gradients as windows meet in a pixel.
  const double tolerance_ = sum_tolerance(forward_.pool.kernel.height * forward_.pool.kernel.width);
};

TEST_P(Pool, ForwardTakesWhatEachWindowHas) {
  Block x = tensor(forward_.x, x_);
  Block y = tensor(forward_.y);
  Block where = index();
  run_forward(x, y, where);
  expect_near(values(forward_.y, y), naive_pool(forward_, x_), is_max() ? 0 : tolerance_);
  expect_same_on_host(forward_.y, y, is_max() ? 0 : 2 * tolerance_);
}

TEST_P(Pool, GradientIsTheSlopeOfTheForwardPass) {
  Block x = tensor(forward_.x, x_);
  Block y = tensor(forward_.y);
  Block where = index();
  run_forward(x, y, where);
  Block dy = tensor(forward_.y, dy_);
  Block dx = tensor(forward_.x);
  run_backward(dy, where, dx);
  const auto loss = [&](const Values& at) { return dot(dy_, naive_pool(forward_, at)); };
  // Of equal numbers the first counts, and a maximum has no slope.
  if (has_float_tensors() || !is_max()) {
    expect_near(values(forward_.x, dx), numeric_gradient(x_, loss), tolerance_ + rounding());
  }
  expect_same_on_host(forward_.x, dx, 2 * tolerance_);
}

TEST_P(Pool, GivesTheSameBitsAgainIndexIncluded) {
  Block x = tensor(forward_.x, x_);
  Block dy = tensor(forward_.y, dy_);
  std::array y{tensor(forward_.y), tensor(forward_.y)};
  std::array where{index(), index()};
  std::array dx{tensor(forward_.x), tensor(forward_.x)};
  for (const std::size_t i : {0U, 1U}) {
    run_forward(x, y[i], where[i]);
    run_backward(dy, where[i], dx[i]);
  }
  EXPECT_EQ(y[0].bytes(), y[1].bytes());
  EXPECT_EQ(where[0].bytes(), where[1].bytes());
  EXPECT_EQ(dx[0].bytes(), dx[1].bytes());
}

constexpr nets::PoolKind kMax = nets::PoolKind::kMax;
constexpr nets::PoolKind kAverage = nets::PoolKind::kAverage;

nets::Pool counted(nets::PoolKind kind, nets::Extent kernel, nets::Extent stride) {
  return {.kind = kind,
          .kernel = kernel,
          .stride = stride,
          .padding = nets::square(1),
          .counts_padding = true};
}

nets::Pool rounded_up(nets::PoolKind kind, nets::Extent kernel, nets::Extent stride) {
  return {.kind = kind, .kernel = kernel, .stride = stride, .rounds_up = true};
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Pool,
    ::testing::Values(
        PoolCase{{3, {16, 6, 4}}, {kMax}},
        PoolCase{{1, {20, 5, 7}}, {kMax}},  // a row and a column left
        PoolCase{{3, {6, 7, 7}}, {kMax, nets::square(3), nets::square(2), nets::square(1)}},
        PoolCase{{1, {3, 6, 5}}, {kMax, {3, 2}, {2, 1}, {1, 0}}},
        PoolCase{{1, {33, 4, 4}}, {kMax, nets::square(3), nets::square(1), nets::square(1)}},
        PoolCase{{2, {8, 16, 16}}, {kMax, nets::square(16), nets::square(16)}},  // 256 taps
        PoolCase{{2, {8, 9, 9}}, {kMax, nets::square(2), nets::square(3)}},  // with gaps between
        PoolCase{{3, {10, 6, 4}}, {kAverage}},
        PoolCase{{1, {16, 5, 5}}, {kAverage, nets::square(3), nets::square(2), nets::square(1)}},
        PoolCase{{3, {3, 5, 4}}, {kAverage, {2, 3}, {1, 2}, {1, 1}}},
        PoolCase{{3, {20, 5, 3}}, {kAverage, {5, 3}, {5, 3}, nets::square(0)}},  // global
        PoolCase{{2, {20, 5, 5}}, counted(kAverage, nets::square(3), nets::square(1))},
        PoolCase{{2, {3, 6, 5}}, counted(kAverage, {3, 2}, {2, 1})},
        PoolCase{{2, {16, 6, 8}}, rounded_up(kMax, nets::square(3), nets::square(2))},
        PoolCase{{1, {10, 7, 6}}, rounded_up(kMax, {2, 3}, {2, 3})},  // a rest of one row
        PoolCase{{2, {3, 6, 8}}, rounded_up(kMax, nets::square(3), nets::square(2))},
        PoolCase{{2, {20, 6, 8}}, rounded_up(kAverage, nets::square(3), nets::square(2))}));

}  // namespace
}  // namespace spillway::test
