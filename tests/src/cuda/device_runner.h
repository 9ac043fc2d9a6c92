#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/layout/bfloat16.h"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"
#include "tests/gpu.h"
#include "tests/src/host/kernel_runner.h"
#include "um/cuda/driver/check.h"

namespace spillway::cuda {

using host::Values;

/// Device memory, aligned to 256 bytes as the runtime's is. All its bytes are 0xFF at first, which
/// read as numbers are NaN, and guard bytes follow it.
class DeviceBlock {
 public:
  explicit DeviceBlock(um::Bytes size) : size_{size.count()} {
    void* memory = nullptr;
    um::check(cudaMalloc(&memory, size_ + kGuard));
    memory_.reset(static_cast<std::byte*>(memory));
    um::check(cudaMemset(memory, 0xFF, size_ + kGuard));
    um::check(cudaDeviceSynchronize());
  }

  [[nodiscard]] std::byte* data() { return memory_.get(); }
  /// What it holds when all work is done.
  [[nodiscard]] std::vector<std::byte> bytes() const { return copy(0, size_); }
  template <class T>
  [[nodiscard]] std::vector<T> numbers() const {
    const std::vector<std::byte> raw = bytes();
    std::vector<T> result(raw.size() / sizeof(T));
    if (!raw.empty()) std::memcpy(result.data(), raw.data(), result.size() * sizeof(T));
    return result;
  }
  void write(std::span<const std::byte> bytes) {
    ASSERT_EQ(bytes.size(), size_);
    um::check(cudaMemcpy(memory_.get(), bytes.data(), size_, cudaMemcpyHostToDevice));
    um::check(cudaDeviceSynchronize());
  }
  [[nodiscard]] bool guard_is_intact() const {
    return copy(size_, kGuard) == std::vector<std::byte>(kGuard, std::byte{0xFF});
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { (void)cudaFree(memory); }
  };
  static constexpr std::size_t kGuard = 256;

  [[nodiscard]] std::vector<std::byte> copy(std::size_t from, std::size_t count) const {
    std::vector<std::byte> result(count);
    um::check(cudaDeviceSynchronize());
    um::check(cudaMemcpy(result.data(), memory_.get() + from, count, cudaMemcpyDeviceToHost));
    return result;
  }

  std::size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
};

/// The host backend, by which the device's results are judged.
class HostRunner : public host::KernelRunner {
 public:
  using host::KernelRunner::backend;
  using host::KernelRunner::parameters;
  using host::KernelRunner::run;
  using host::KernelRunner::tensor;
  using host::KernelRunner::values;
  void TestBody() override {}
};

/// The same operand on the host and on the device.
struct Operand {
  host::Block host;
  DeviceBlock device;

  [[nodiscard]] std::vector<std::byte> bytes() const { return device.bytes(); }
};

/// Runs operations on the host backend and by the device's kernels, from the same numbers.
class DeviceRunner : public testing::GpuTest {
 protected:
  explicit DeviceRunner(Precision precision) : layout_{precision} {
    machine_.precision = precision;
  }

  void SetUp() override {
    testing::GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    um::check(cudaStreamCreateWithFlags(&machine_.stream, cudaStreamNonBlocking));
  }
  void TearDown() override {
    if (machine_.stream != nullptr) um::check(cudaStreamDestroy(machine_.stream));
  }

  [[nodiscard]] bool is_bf16() const { return layout_.is_bf16(); }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] HostRunner& host() { return host_; }

  /// As tensors of the precision hold them.
  [[nodiscard]] Values rounded(Values values) const {
    if (!is_bf16()) return values;
    for (double& v : values) {
      v = static_cast<double>(to_float(to_bfloat16(static_cast<float>(v))));
    }
    return values;
  }
  [[nodiscard]] Values random(std::size_t count, unsigned seed) const {
    return rounded(host::random_values(count, seed));
  }

  [[nodiscard]] Operand bytes(um::Bytes host, um::Bytes device) const {
    return {.host = host::Block{host}, .device = DeviceBlock{device}};
  }
  [[nodiscard]] Operand bytes(um::Bytes size) const { return bytes(size, size); }
  [[nodiscard]] Operand tensor(const TensorShape& shape) {
    return {.host = host_.tensor(shape), .device = DeviceBlock{layout_.tensor_bytes(shape)}};
  }
  /// Requires: the values are rounded.
  [[nodiscard]] Operand tensor(const TensorShape& shape, const Values& values) {
    Operand operand{.host = host_.tensor(shape, values),
                    .device = DeviceBlock{layout_.tensor_bytes(shape)}};
    std::vector<std::byte> bytes(layout_.tensor_bytes(shape).count());
    for_each(shape, [&](std::size_t canonical, std::size_t stored) {
      put(bytes, stored, static_cast<float>(values[canonical]));
    });
    operand.device.write(bytes);
    return operand;
  }
  [[nodiscard]] Operand parameters(const ParameterSpec& spec, const Values& values) {
    Operand operand{.host = host_.parameters(spec, values),
                    .device = DeviceBlock{ParameterLayout{machine_.precision, spec}.bytes()}};
    std::vector<std::byte> bytes(ParameterLayout{machine_.precision, spec}.bytes().count());
    import_block(machine_.precision, spec, host::to_floats(values), bytes);
    operand.device.write(bytes);
    return operand;
  }
  template <class T>
  [[nodiscard]] Operand numbers(const std::vector<T>& values) const {
    Operand operand = bytes(um::Bytes{values.size() * sizeof(T)});
    std::memcpy(operand.host.data(), values.data(), values.size() * sizeof(T));
    operand.device.write(std::as_bytes(std::span{values}));
    return operand;
  }

  /// The values of a device tensor. Fails the test unless its padding is zero.
  [[nodiscard]] Values values(const TensorShape& shape, const Operand& operand) const {
    const std::vector<std::byte> bytes = operand.device.bytes();
    Values result(shape.elements());
    std::vector<std::byte> rest = bytes;
    for_each(shape, [&](std::size_t canonical, std::size_t stored) {
      result[canonical] = static_cast<double>(get(bytes, stored));
      put(rest, stored, 0.F);
    });
    EXPECT_EQ(rest, std::vector<std::byte>(rest.size())) << "padding of the tensor is zero";
    return result;
  }

  /// Runs both, the device in a workspace of exactly the size it asked for. Fails the test when
  /// the device writes behind a block.
  template <class Op>
  void run(const Op& op, const std::vector<Operand*>& operands, const StepContext& context = {}) {
    std::vector<host::Block*> blocks;
    for (Operand* operand : operands) blocks.push_back(&operand->host);
    host_.run(op, blocks, context);
    run_on_device(op, operands, context);
  }
  template <class Op>
  void run_on_device(const Op& op, const std::vector<Operand*>& operands,
                     const StepContext& context = {}) {
    um::Bytes size;
    if constexpr (requires { workspace_of(machine_, op); }) size = workspace_of(machine_, op);
    DeviceBlock workspace{size};
    std::vector<std::byte*> addresses;
    for (Operand* operand : operands) addresses.push_back(operand->device.data());
    make_kernel(machine_, op)
        ->run({.operands = addresses, .workspace = workspace.data(), .context = &context});
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_TRUE(workspace.guard_is_intact()) << "the workspace is as large as the kernel said";
    for (const Operand* operand : operands) EXPECT_TRUE(operand->device.guard_is_intact());
  }

  /// Fails the test unless the device has the host's numbers, rounded once.
  void expect_equal(const TensorShape& shape, Operand& operand) {
    host::expect_near(values(shape, operand), rounded(host_.values(shape, operand.host)), 0);
  }
  /// Fails the test unless the device's numbers are within `tolerance`, which covers the float
  /// arithmetic of both, of the host's. A bfloat16 has 8 bits: rounding to the nearest errs by up
  /// to 2^-9 of the next power of two, 2^-8 of the number itself.
  void expect_close(const TensorShape& shape, Operand& operand, double tolerance) {
    const Values actual = values(shape, operand);
    const Values expected = host_.values(shape, operand.host);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double rounding = is_bf16() ? std::ldexp(std::abs(expected[i]) + tolerance, -8) : 0;
      ASSERT_NEAR(actual[i], expected[i], tolerance + rounding) << "at " << i;
    }
  }

 private:
  template <class Visit>
  static void for_each(const TensorShape& shape, const Visit& visit) {
    const auto& [channels, height, width] = shape.image;
    const std::size_t image = Layout::padded(shape.image).elements();
    std::size_t canonical = 0;
    for (std::size_t n = 0; n < shape.batch; ++n) {
      for (std::size_t c = 0; c < channels; ++c) {
        for (std::size_t h = 0; h < height; ++h) {
          for (std::size_t w = 0; w < width; ++w) {
            visit(canonical++, n * image + Layout::index(shape.image, c, h, w));
          }
        }
      }
    }
  }
  void put(std::vector<std::byte>& bytes, std::size_t element, float value) const {
    const Bfloat16 half = to_bfloat16(value);
    if (is_bf16()) {
      std::memcpy(bytes.data() + element * sizeof half, &half, sizeof half);
    } else {
      std::memcpy(bytes.data() + element * sizeof value, &value, sizeof value);
    }
  }
  [[nodiscard]] float get(const std::vector<std::byte>& bytes, std::size_t element) const {
    float value = 0;
    Bfloat16 half;
    if (is_bf16()) {
      std::memcpy(&half, bytes.data() + element * sizeof half, sizeof half);
      return to_float(half);
    }
    std::memcpy(&value, bytes.data() + element * sizeof value, sizeof value);
    return value;
  }

  Layout layout_;
  Machine machine_;
  HostRunner host_;
};

/// TF32 is for multiplications of matrices; everything else is as with kFp32.
inline const auto kPrecisions = ::testing::Values(Precision::kFp32, Precision::kBf16);

}  // namespace spillway::cuda
