#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/cuda/cuda_backend.h"
#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {

/// Runs operations by a CudaBackend, cuDNN and cuBLASLt included, and on the host backend.
class BackendRunner : public DeviceRunner {
 protected:
  explicit BackendRunner(Precision precision) : DeviceRunner{precision} {}

  void SetUp() override {
    DeviceRunner::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    CudaBackendOptions options{.precision = machine().precision,
                               .max_workspace = um::Bytes{1U << 30U}};
    backend_.emplace(machine().stream, options);
    options.deterministic = true;
    deterministic_.emplace(machine().stream, options);
  }
  void TearDown() override {
    backend_.reset();  // before the stream
    deterministic_.reset();
    DeviceRunner::TearDown();
  }

  [[nodiscard]] const CudaBackend& backend() const { return *backend_; }
  [[nodiscard]] const CudaBackend& deterministic() const { return *deterministic_; }

  /// Uninitialised, for a kernel to write.
  [[nodiscard]] Operand blank_parameters(const ParameterSpec& spec) {
    return {.host = host().parameters(spec),
            .device = DeviceBlock{backend().parameter_bytes(spec)}};
  }
  using DeviceRunner::values;
  /// The values of a device block. Fails the test unless its padding is zero.
  [[nodiscard]] Values values(const ParameterSpec& spec, Operand& operand) const {
    std::vector<float> result(element_count(spec));
    backend().export_parameters(spec, operand.device.data(), result);
    std::vector<std::byte> again(backend().parameter_bytes(spec).count());
    import_block(machine().precision, spec, result, again);
    const std::vector<float> stored = operand.device.numbers<float>();
    const auto* const expected = reinterpret_cast<const float*>(again.data());
    const std::size_t floats = ParameterLayout{machine().precision, spec}.float_count();
    EXPECT_TRUE(std::equal(expected, expected + floats, stored.begin()))
        << "padding of the parameters is zero";
    return {result.begin(), result.end()};
  }

  void run_on_host(const Operation& operation, const std::vector<Operand*>& operands) {
    std::vector<host::Block*> blocks;
    for (Operand* operand : operands) blocks.push_back(&operand->host);
    host().run(operation, blocks);
  }
  /// In a workspace of exactly the algorithm's size. Fails the test when the device writes behind a
  /// block.
  static void run_by(const CudaBackend& backend, const AlgorithmInfo& algorithm,
                     const Operation& operation, const std::vector<Operand*>& operands,
                     bool is_recomputation = false) {
    SCOPED_TRACE(algorithm.name);
    DeviceBlock workspace{algorithm.workspace};
    std::vector<std::byte*> addresses;
    for (Operand* operand : operands) addresses.push_back(operand->device.data());
    const StepContext context;
    backend.prepare(operation, algorithm.name)
        ->run({.operands = addresses,
               .workspace = workspace.data(),
               .context = &context,
               .is_recomputation = is_recomputation});
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_TRUE(workspace.guard_is_intact()) << "the workspace is as large as the kernel said";
    for (const Operand* operand : operands) EXPECT_TRUE(operand->device.guard_is_intact());
  }
  void run_first(const Operation& operation, const std::vector<Operand*>& operands,
                 bool is_recomputation = false) {
    run_by(backend(), backend().algorithms(operation).at(0), operation, operands, is_recomputation);
  }
  /// Fails the test unless each algorithm of the deterministic backend gives the same bits twice.
  void expect_same_bits(const Operation& operation, Operand& a, Operand& b, Operand first,
                        Operand second) {
    for (const AlgorithmInfo& algorithm : deterministic().algorithms(operation)) {
      run_by(deterministic(), algorithm, operation, {&a, &b, &first});
      run_by(deterministic(), algorithm, operation, {&a, &b, &second});
      EXPECT_EQ(first.device.bytes(), second.device.bytes()) << algorithm.name;
    }
  }

  /// By how much sums of `terms` products of numbers in [-1, 1] may differ between device and host,
  /// before they are rounded to the tensor's elements.
  ///
  /// fp32: both sum in float. bf16: the products are exact in float; tensor cores cut sums off
  /// instead of rounding them, which errs in one direction and by twice as much: four times the
  /// tolerance for the device. TF32 has 10 bits behind the point and may be cut off, so that a
  /// factor errs by up to 2^-10 of itself and a product by 2^-9, about 2^-10 in the root mean
  /// square; the n products, 1/3 each in the root mean square, err together by sqrt(n) / 3 * 2^-10
  /// in the root mean square where the signs differ and as much again from the common direction;
  /// six times that for the worst of many sums.
  [[nodiscard]] double product_tolerance(std::size_t terms) const {
    const double rounding = host::sum_tolerance(terms);
    switch (machine().precision) {
      case Precision::kFp32:
        return 2 * rounding;
      case Precision::kTf32:
        return 2 * rounding + std::sqrt(static_cast<double>(terms)) * std::ldexp(4.0, -10);
      case Precision::kBf16:
        break;
    }
    return 5 * rounding;
  }

  /// Fails the test unless `actual` is within `tolerance`, and with bfloat16 two roundings (of the
  /// product, and with the bias added, which is at most 1), of `expected`.
  void expect_products(const Values& actual, const Values& expected, double tolerance) const {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double size = 2 * std::abs(expected[i]) + 1 + tolerance;
      const double rounding = is_bf16() ? std::ldexp(size, -8) : 0;
      ASSERT_NEAR(actual[i], expected[i], tolerance + rounding) << "at " << i;
    }
  }

 private:
  std::optional<CudaBackend> backend_;
  std::optional<CudaBackend> deterministic_;
};

inline const auto kAllPrecisions =
    ::testing::Values(Precision::kFp32, Precision::kTf32, Precision::kBf16);

}  // namespace spillway::cuda
