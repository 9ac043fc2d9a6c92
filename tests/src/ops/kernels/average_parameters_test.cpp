#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

class AveragesOfParameters : public KernelRunner,
                             public ::testing::WithParamInterface<ParameterSpec> {};

// Twice average = average + 0.25 (w - average), which leaves the parameters alone.
TEST_P(AveragesOfParameters, GoTheirPartTowardsTheParameters) {
  const ParameterSpec& spec = GetParam();
  const Values w = random_values(element_count(spec), 1);
  Values average = random_values(w.size(), 2);
  Block w_block = parameters(spec, w);
  Block average_block = parameters(spec, average);
  for (int step = 0; step < 2; ++step) {
    run(AverageParameters{.parameters = spec, .decay = 0.75},
        {&w_block, &average_block, &average_block});
    for (std::size_t i = 0; i < w.size(); ++i) average[i] += 0.25 * (w[i] - average[i]);
  }
  // Some six roundings of numbers up to 2.
  host::expect_near(values(spec, average_block), average, 1e-6);
  host::expect_near(values(spec, w_block, /*has_copy=*/true), w, 1e-7);
  expect_same_on_host(spec, average_block);
}

INSTANTIATE_TEST_SUITE_P(Specs, AveragesOfParameters,
                         ::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                           LinearParameters{10, {6, 2, 2}, true},
                                           BatchNormParameters{33}));

}  // namespace
}  // namespace spillway::test
