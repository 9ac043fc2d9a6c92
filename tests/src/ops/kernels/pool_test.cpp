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

// Name that gtest looks for.
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
  // On the host, oneDNN accumulates the windows' contributions in the tensor and rounds each
  // partial sum to bfloat16. These sums of shares of numbers up to 1 seldom exceed a half.
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
  // Sums have as many terms as a window has pixels, or a pixel has windows.
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
  // The first of equal numbers counts, and the numeric gradient of such a maximum is undefined.
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
        PoolCase{{1, {20, 5, 7}}, {kMax}},  // a row and a column are left over
        PoolCase{{3, {6, 7, 7}}, {kMax, nets::square(3), nets::square(2), nets::square(1)}},
        PoolCase{{1, {3, 6, 5}}, {kMax, {3, 2}, {2, 1}, {1, 0}}},
        PoolCase{{1, {33, 4, 4}}, {kMax, nets::square(3), nets::square(1), nets::square(1)}},
        PoolCase{{2, {8, 16, 16}}, {kMax, nets::square(16), nets::square(16)}},  // 256 taps
        PoolCase{{2, {8, 9, 9}}, {kMax, nets::square(2), nets::square(3)}},  // gaps between windows
        PoolCase{{3, {10, 6, 4}}, {kAverage}},
        PoolCase{{1, {16, 5, 5}}, {kAverage, nets::square(3), nets::square(2), nets::square(1)}},
        PoolCase{{3, {3, 5, 4}}, {kAverage, {2, 3}, {1, 2}, {1, 1}}},
        PoolCase{{3, {20, 5, 3}}, {kAverage, {5, 3}, {5, 3}, nets::square(0)}},  // whole image
        PoolCase{{2, {20, 5, 5}}, counted(kAverage, nets::square(3), nets::square(1))},
        PoolCase{{2, {3, 6, 5}}, counted(kAverage, {3, 2}, {2, 1})},
        PoolCase{{2, {16, 6, 8}}, rounded_up(kMax, nets::square(3), nets::square(2))},
        PoolCase{{1, {10, 7, 6}}, rounded_up(kMax, {2, 3}, {2, 3})},  // one row left over
        PoolCase{{2, {3, 6, 8}}, rounded_up(kMax, nets::square(3), nets::square(2))},
        PoolCase{{2, {20, 6, 8}}, rounded_up(kAverage, nets::square(3), nets::square(2))}));

struct NormCase {
  TensorShape x;
  nets::LocalResponseNorm norm;
};

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const NormCase& c, std::ostream* out) {
  *out << c.x.batch << " x " << c.x.image.channels << "x" << c.x.image.height << "x"
       << c.x.image.width << " over " << c.norm.size << ", beta " << c.norm.beta;
}

class LocalResponseNorm : public KernelRunner, public ::testing::WithParamInterface<NormCase> {
 protected:
  [[nodiscard]] Values naive(const Values& x) const {
    const auto& [size, alpha, beta, k] = norm_;
    const std::size_t half = size / 2;
    Values y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t plane = shape_.image.height * shape_.image.width;
      const std::size_t c = channel_of(shape_, i);
      double sum = 0;
      for (std::size_t j = c < half ? 0 : c - half;
           j <= std::min(c + half, shape_.image.channels - 1); ++j) {
        sum += std::pow(x[i + j * plane - c * plane], 2);
      }
      const double scale = static_cast<double>(alpha) / static_cast<double>(size);
      y[i] = x[i] / std::pow(static_cast<double>(k) + scale * sum, static_cast<double>(beta));
    }
    return y;
  }

  const TensorShape shape_ = GetParam().x;
  const nets::LocalResponseNorm norm_ = GetParam().norm;
  const Values x_ = random_values(shape_.elements(), 1);
  const Values dy_ = random_values(shape_.elements(), 2);
  // Two sums over a window, and the roundings of a few operations on them.
  const double tolerance_ = 2 * sum_tolerance(norm_.size + 10);
};

TEST_P(LocalResponseNorm, DividesByAPowerOfTheSquaresAround) {
  Block x = tensor(shape_, x_);
  Block y = tensor(shape_);
  run(LrnForward{.x = shape_, .norm = norm_}, {&x, &y});
  expect_near(values(shape_, y), naive(x_), tolerance_);
  expect_same_on_host(shape_, y, 2 * tolerance_);
}

TEST_P(LocalResponseNorm, GradientIsTheSlopeOfTheForwardPass) {
  Block x = tensor(shape_, x_);
  Block y = tensor(shape_);
  run(LrnForward{.x = shape_, .norm = norm_}, {&x, &y});
  Block same_y = tensor(shape_, values(shape_, y));  // the host reads the same rounded y
  Block dy = tensor(shape_, dy_);
  Block dx = tensor(shape_);
  const LrnBackward backward{.x = shape_, .norm = norm_};
  run(backward, {&x, &same_y, &dy, &dx});
  const auto loss = [&](const Values& at) { return dot(dy_, naive(at)); };
  // A rounded y errs by up to 2^-9; the sum of these terms is divided by their number.
  const double of_y =
      has_float_tensors() ? 0 : std::ldexp(2 * static_cast<double>(norm_.alpha * norm_.beta), -9);
  expect_near(values(shape_, dx), numeric_gradient(x_, loss), tolerance_ + of_y);
  expect_same_on_host(shape_, dx, 2 * tolerance_);
  run(backward, {&x, &same_y, &dy, &dy});
  EXPECT_EQ(dy.bytes(), dx.bytes()) << "the same over dy";
}

constexpr nets::LocalResponseNorm kStrong{.size = 5, .alpha = 2, .beta = 0.75F, .k = 1};

INSTANTIATE_TEST_SUITE_P(
    Shapes, LocalResponseNorm,
    ::testing::Values(NormCase{{2, {32, 3, 4}}, kStrong},
                      NormCase{{2, {32, 3, 4}}, {5, 5e-4F, 0.75F, 2}},  // as in AlexNet
                      NormCase{{3, {10, 4, 3}}, kStrong},               // padding channels
                      NormCase{{1, {33, 5, 2}}, {3, 1, 0.5F, 0.5F}},    // a general power
                      NormCase{{2, {3, 4, 5}}, kStrong},           // fewer channels than a window
                      NormCase{{2, {6, 3, 3}}, {1, 3, 0.75F, 1}},  // windows of one channel
                      NormCase{{1, {700, 2, 3}}, kStrong}));       // more than threads per block

}  // namespace
}  // namespace spillway::test
