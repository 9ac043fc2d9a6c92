#include <tuple>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {
namespace {

struct NormCase {
  TensorShape x;
  nets::LocalResponseNorm norm;
};

class CudaLocalResponseNorm
    : public DeviceRunner,
      public ::testing::WithParamInterface<std::tuple<Precision, NormCase>> {
 protected:
  CudaLocalResponseNorm() : DeviceRunner{std::get<0>(GetParam())} {}

  const TensorShape shape_ = std::get<1>(GetParam()).x;
  const nets::LocalResponseNorm norm_ = std::get<1>(GetParam()).norm;
  // As on the host: two sums of as many terms as a window has and the roundings of a few operations
  // on them. Here both sides have them; the device's power errs by up to 4 units instead of 1.
  const double tolerance_ = 2 * 2 * host::sum_tolerance(norm_.size + 10);
};

TEST_P(CudaLocalResponseNorm, IsTheHostsBothWays) {
  Operand x = tensor(shape_, random(shape_.elements(), 1));
  Operand y = tensor(shape_);
  run(LrnForward{.x = shape_, .norm = norm_}, {&x, &y});
  expect_close(shape_, y, tolerance_);

  // Backward from the same y on both sides.
  Operand same_y = tensor(shape_, values(shape_, y));
  Operand dy = tensor(shape_, random(shape_.elements(), 2));
  Operand dx = tensor(shape_);
  const LrnBackward backward{.x = shape_, .norm = norm_};
  run(backward, {&x, &same_y, &dy, &dx});
  expect_close(shape_, dx, tolerance_);
  run_on_device(backward, {&x, &same_y, &dy, &dy});
  EXPECT_EQ(dy.device.bytes(), dx.device.bytes()) << "the same over dy";
}

constexpr nets::LocalResponseNorm kStrong{.size = 5, .alpha = 2, .beta = 0.75F, .k = 1};

INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaLocalResponseNorm,
    ::testing::Combine(
        kPrecisions,
        ::testing::Values(NormCase{{2, {32, 3, 4}}, kStrong},
                          NormCase{{2, {32, 3, 4}}, {5, 5e-4F, 0.75F, 2}},  // AlexNet's
                          NormCase{{3, {10, 4, 3}}, kStrong},               // padding channels
                          NormCase{{1, {33, 5, 2}}, {3, 1, 0.5F, 0.5F}},
                          NormCase{{2, {3, 4, 5}}, kStrong},           // less than a window
                          NormCase{{2, {6, 3, 3}}, {1, 3, 0.75F, 1}},  // each for itself
                          NormCase{{1, {700, 2, 3}}, kStrong})));      // more than threads

}  // namespace
}  // namespace spillway::cuda
