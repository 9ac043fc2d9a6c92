#include <tuple>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {
namespace {

class CudaAdamUpdate : public DeviceRunner,
                       public ::testing::WithParamInterface<std::tuple<Precision, ParameterSpec>> {
 protected:
  CudaAdamUpdate() : DeviceRunner{std::get<0>(GetParam())} {}

  // The floats of a block of the device, in the canonical order.
  [[nodiscard]] Values exported(const Operand& operand) const {
    std::vector<float> values(element_count(spec_));
    export_block(machine().precision, spec_, operand.device.bytes(), values);
    return {values.begin(), values.end()};
  }

  const ParameterSpec spec_ = std::get<1>(GetParam());
};

// Exact: both round after each operation, square roots and quotients too. Parameters are floats in
// all precisions.
TEST_P(CudaAdamUpdate, GivesTheHostsBitsInPlaceStepAfterStep) {
  const std::size_t count = element_count(spec_);
  Operand w = parameters(spec_, host::random_values(count, 1));
  Operand m = parameters(spec_, Values(count, 0.0));
  Operand v = parameters(spec_, Values(count, 0.0));
  Operand dw = parameters(spec_, host::random_values(count, 2));
  for (std::uint64_t step = 0; step < 4; ++step) {
    const AdamUpdate update{.parameters = spec_,
                            .options = {.weight_decay = 0.1F, .decoupled = step % 2 == 1}};
    run(update, {&w, &m, &v, &dw, &w, &m, &v}, {.step = step, .learning_rate = 0.03F});
  }
  EXPECT_EQ(exported(w), host().values(spec_, w.host));
  EXPECT_EQ(exported(m), host().values(spec_, m.host));
  EXPECT_EQ(exported(v), host().values(spec_, v.host));
}

// The block is what importing its floats would make of it, padding and copy included.
TEST_P(CudaAdamUpdate, KeepsPaddingZeroAndTheCopyUpToDate) {
  const std::size_t count = element_count(spec_);
  Operand w = parameters(spec_, host::random_values(count, 1));
  Operand m = parameters(spec_, host::random_values(count, 3));
  Operand v = parameters(spec_, Values(count, 0.5));
  Operand dw = parameters(spec_, host::random_values(count, 2));
  run_on_device(AdamUpdate{.parameters = spec_, .options = {.weight_decay = 0.1F}},
                {&w, &m, &v, &dw, &w, &m, &v}, {.learning_rate = 0.03F});
  const std::vector<std::byte> actual = w.device.bytes();
  std::vector<std::byte> expected(actual.size());
  import_block(machine().precision, spec_, host::to_floats(exported(w)), expected);
  EXPECT_EQ(actual, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, CudaAdamUpdate,
    ::testing::Combine(kPrecisions,
                       ::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                         ConvolutionParameters{33, 40, nets::square(1), false},
                                         LinearParameters{10, {6, 2, 2}, true},
                                         BatchNormParameters{33})));

}  // namespace
}  // namespace spillway::cuda
