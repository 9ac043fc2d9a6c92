#pragma once

#include <cmath>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {

/// Tensors are bfloat16 where SPILLWAY_TEST_PRECISION says bf16.
[[nodiscard]] inline Precision tested_precision() {
  const char* const name = std::getenv("SPILLWAY_TEST_PRECISION");
  return name != nullptr && std::string_view{name} == "bf16" ? Precision::kBf16 : Precision::kFp32;
}

/// As tensors of the tested precision hold them.
[[nodiscard]] inline Values rounded(Values values) {
  if (tested_precision() != Precision::kBf16) return values;
  for (double& v : values) v = static_cast<double>(to_float(to_bfloat16(static_cast<float>(v))));
  return values;
}
[[nodiscard]] inline Values random_values(std::size_t count, unsigned seed) {
  return rounded(host::random_values(count, seed));
}

/// Whether tensors hold what a float does: no two drawn numbers of a window are equal.
[[nodiscard]] inline bool has_float_tensors() { return tested_precision() == Precision::kFp32; }

/// Fails the test unless each value is within `tolerance`, which covers the float arithmetic of the
/// host, of the expected one: twice that here, as powers and exponentials err by more on a device.
/// A bfloat16 has 8 bits: rounding to the nearest errs by up to 2^-9 of the next power of two, 2^-8
/// of the number itself. What has no tolerance is rounded once.
inline void expect_near(const Values& actual, const Values& expected, double tolerance) {
  if (tolerance == 0) {
    EXPECT_EQ(actual, rounded(expected));
    return;
  }
  const bool is_bf16 = tested_precision() == Precision::kBf16;
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double rounding = is_bf16 ? std::ldexp(std::abs(expected[i]) + tolerance, -8) : 0;
    ASSERT_NEAR(actual[i], expected[i], 2 * tolerance + rounding) << "at " << i;
  }
}

/// What tests of operations run kernels with: on the device, and from the same numbers on the host.
class KernelRunner : public DeviceRunner {
 protected:
  KernelRunner() : DeviceRunner{tested_precision()} {}

  using DeviceRunner::parameters;
  using DeviceRunner::values;
  /// Uninitialised, for a kernel to write.
  [[nodiscard]] Operand parameters(const ParameterSpec& spec) {
    return {.host = host().parameters(spec),
            .device = DeviceBlock{ParameterLayout{machine().precision, spec}.bytes()}};
  }
  /// The floats of a block of the device. Fails the test unless the block is what importing them
  /// would make of it, padding and, where it `has_copy` in bfloat16, that included.
  [[nodiscard]] Values values(const ParameterSpec& spec, const Operand& block,
                              bool has_copy = false) const {
    std::vector<float> numbers(element_count(spec));
    const std::vector<std::byte> actual = block.device.bytes();
    export_block(machine().precision, spec, actual, numbers);
    std::vector<std::byte> expected(actual.size());
    import_block(machine().precision, spec, numbers, expected);
    const std::size_t floats = ParameterLayout{machine().precision, spec}.float_count();
    const auto compared =
        static_cast<std::ptrdiff_t>(has_copy ? actual.size() : floats * sizeof(float));
    EXPECT_TRUE(std::equal(actual.begin(), actual.begin() + compared, expected.begin()))
        << "padding is zero, and the copy up to date";
    return {numbers.begin(), numbers.end()};
  }
  /// Fails the test unless the device has the host's numbers, bit by bit.
  void expect_same_on_host(const ParameterSpec& spec, Operand& block) {
    EXPECT_EQ(values(spec, block), host().values(spec, block.host));
  }
  /// Likewise of a tensor, but for one rounding and `tolerance`, which covers both sides.
  void expect_same_on_host(const TensorShape& shape, Operand& block, double tolerance = 0) {
    if (tolerance == 0) {
      expect_equal(shape, block);
    } else {
      expect_close(shape, block, tolerance);
    }
  }
  [[nodiscard]] Operand saved_by(const PoolForward& op) {
    return bytes(host().backend().saved_bytes(op), saved_bytes(machine(), op));
  }
};

}  // namespace spillway::cuda
