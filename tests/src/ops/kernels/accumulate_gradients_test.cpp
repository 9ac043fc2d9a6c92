#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

class AccumulatedGradients : public KernelRunner,
                             public ::testing::WithParamInterface<ParameterSpec> {};

// One rounding a number.
TEST_P(AccumulatedGradients, AreTheSumsInPlaceAndLeavePaddingZero) {
  const ParameterSpec spec = GetParam();
  const std::vector<float> first = to_floats(random_values(element_count(spec), 1));
  const std::vector<float> second = to_floats(random_values(element_count(spec), 2));
  Values expected(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    expected[i] = static_cast<double>(first[i] + second[i]);
  }
  Block sum = parameters(spec, Values(first.begin(), first.end()));
  Block part = parameters(spec, Values(second.begin(), second.end()));
  run(AccumulateGradients{.parameters = spec}, {&sum, &part, &sum});
  EXPECT_EQ(values(spec, sum), expected);
  expect_same_on_host(spec, sum);
}

// The last is worth a team of threads.
INSTANTIATE_TEST_SUITE_P(Specs, AccumulatedGradients,
                         ::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                           ConvolutionParameters{33, 40, nets::square(1), false},
                                           LinearParameters{10, {6, 2, 2}, true},
                                           BatchNormParameters{33},
                                           LinearParameters{100, {400, 1, 1}, true}));

}  // namespace
}  // namespace spillway::test
