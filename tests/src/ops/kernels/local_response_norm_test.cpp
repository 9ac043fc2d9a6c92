#include <ostream>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

struct NormCase {
  TensorShape x;
  nets::LocalResponseNorm norm;
};

// Gtest looks for this name.
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
  // Two sums of as many terms as a window has, and the roundings of a few operations on them.
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
  Block same_y = tensor(shape_, values(shape_, y));  // on the host too
  Block dy = tensor(shape_, dy_);
  Block dx = tensor(shape_);
  const LrnBackward backward{.x = shape_, .norm = norm_};
  run(backward, {&x, &same_y, &dy, &dx});
  const auto loss = [&](const Values& at) { return dot(dy_, naive(at)); };
  // A rounded y errs by up to 2^-9, in a sum of that many terms over their number.
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
                      NormCase{{2, {32, 3, 4}}, {5, 5e-4F, 0.75F, 2}},  // AlexNet's
                      NormCase{{3, {10, 4, 3}}, kStrong},               // padding channels
                      NormCase{{1, {33, 5, 2}},
                               {3, 1, 0.5F, 0.5F}},       // a power that is no root of roots
                      NormCase{{2, {3, 4, 5}}, kStrong},  // an image, less than a window
                      NormCase{{2, {6, 3, 3}}, {1, 3, 0.75F, 1}},  // each channel for itself
                      NormCase{{1, {700, 2, 3}}, kStrong}));       // more than threads of a block

}  // namespace
}  // namespace spillway::test
