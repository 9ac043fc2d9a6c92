#include <tuple>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {
namespace {

// The same mask, and a product that is rounded once.
class CudaDropout : public DeviceRunner,
                    public ::testing::WithParamInterface<std::tuple<Precision, TensorShape>> {
 protected:
  CudaDropout() : DeviceRunner{std::get<0>(GetParam())} {}

  const TensorShape shape_ = std::get<1>(GetParam());
  const StepContext context_{.seed = 0x123456789ABCDEF0, .step = 3};
};

TEST_P(CudaDropout, DrawsTheHostsMaskBothWays) {
  Operand x = tensor(shape_, random(shape_.elements(), 1));
  Operand y = tensor(shape_);
  Operand dx = tensor(shape_);
  run(DropoutForward{.x = shape_, .probability = 0.3F, .stream = 5}, {&x, &y}, context_);
  expect_equal(shape_, y);
  run(DropoutBackward{.x = shape_, .probability = 0.3F, .stream = 5}, {&x, &dx}, context_);
  EXPECT_EQ(dx.device.bytes(), y.device.bytes());
  run_on_device(DropoutForward{.x = shape_, .probability = 0.3F, .stream = 5}, {&x, &x}, context_);
  EXPECT_EQ(x.device.bytes(), y.device.bytes()) << "the same over x";
}

TEST_P(CudaDropout, KeepsAllWithProbabilityZeroAndNothingWithOne) {
  const Values x = random(shape_.elements(), 1);
  Operand operand = tensor(shape_, x);
  Operand y = tensor(shape_);
  run(DropoutForward{.x = shape_, .probability = 0.F, .stream = 0}, {&operand, &y}, context_);
  EXPECT_EQ(values(shape_, y), x);
  run(DropoutForward{.x = shape_, .probability = 1.F, .stream = 0}, {&operand, &y}, context_);
  EXPECT_EQ(values(shape_, y), Values(x.size(), 0.0));
}

INSTANTIATE_TEST_SUITE_P(Shapes, CudaDropout,
                         ::testing::Combine(kPrecisions,
                                            ::testing::Values(TensorShape{3, {20, 4, 5}},
                                                              TensorShape{1, {3, 7, 5}},
                                                              TensorShape{2, {1000, 1, 1}},
                                                              TensorShape{5, {12, 9, 7}})));

}  // namespace
}  // namespace spillway::cuda
