#pragma once

#include <cstddef>
#include <tuple>
#include <vector>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {

/// Runs kernels that treat the numbers of a layer's parameters one by one, for a precision and a
/// layout: on the host backend and on the device.
class ParameterKernel : public DeviceRunner,
                        public ::testing::WithParamInterface<std::tuple<Precision, ParameterSpec>> {
 protected:
  ParameterKernel() : DeviceRunner{std::get<0>(GetParam())} {}

  [[nodiscard]] Operand parameters(const Values& values) {
    return DeviceRunner::parameters(spec_, values);
  }
  /// The floats of a block of the device, in the canonical order.
  [[nodiscard]] Values exported(const Operand& operand) const {
    std::vector<float> values(element_count(spec_));
    export_block(machine().precision, spec_, operand.device.bytes(), values);
    return {values.begin(), values.end()};
  }
  /// Fails the test unless the device has the host's numbers, bit by bit.
  void expect_same_bits(Operand& operand) {
    EXPECT_EQ(exported(operand), host().values(spec_, operand.host));
  }
  /// Fails the test unless the block is what importing its floats would make of it, padding and
  /// copy included.
  void expect_as_imported(const Operand& operand) const {
    const std::vector<std::byte> actual = operand.device.bytes();
    std::vector<std::byte> expected(actual.size());
    import_block(machine().precision, spec_, host::to_floats(exported(operand)), expected);
    EXPECT_EQ(actual, expected);
  }

  const ParameterSpec spec_ = std::get<1>(GetParam());
  const std::size_t count_ = element_count(spec_);
};

/// In every precision: channels that are padded and that are not, with a bias and without.
inline const auto kParameterKernelCases = ::testing::Combine(
    kPrecisions, ::testing::Values(ConvolutionParameters{20, 3, nets::square(3), true},
                                   ConvolutionParameters{33, 40, nets::square(1), false},
                                   LinearParameters{10, {6, 2, 2}, true}, BatchNormParameters{33}));

}  // namespace spillway::cuda
