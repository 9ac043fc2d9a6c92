#include <tuple>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {
namespace {

class CudaAccumulatedGradients
    : public DeviceRunner,
      public ::testing::WithParamInterface<std::tuple<Precision, ParameterSpec>> {
 protected:
  CudaAccumulatedGradients() : DeviceRunner{std::get<0>(GetParam())} {}

  const ParameterSpec spec_ = std::get<1>(GetParam());
};

// Exact: both round once. Gradients of parameters are floats in all precisions.
TEST_P(CudaAccumulatedGradients, AreTheHostsBitsInPlace) {
  const std::size_t count = element_count(spec_);
  Operand sum = parameters(spec_, host::random_values(count, 1));
  Operand part = parameters(spec_, host::random_values(count, 2));
  run(AccumulateGradients{.parameters = spec_}, {&sum, &part, &sum});
  std::vector<float> values(count);
  export_block(machine().precision, spec_, sum.device.bytes(), values);
  EXPECT_EQ(Values(values.begin(), values.end()), host().values(spec_, sum.host));
}

INSTANTIATE_TEST_SUITE_P(
    Specs, CudaAccumulatedGradients,
    ::testing::Combine(kPrecisions,
                       ::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                         LinearParameters{10, {6, 2, 2}, true},
                                         BatchNormParameters{33})));

}  // namespace
}  // namespace spillway::cuda
