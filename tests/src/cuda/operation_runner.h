#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "src/cuda/kernels/kernels.h"
#include "src/cuda/layout/layout.h"
#include "src/cuda/layout/parameter_layout.h"
#include "src/cuda/layout/staged_batch.h"
#include "src/cuda/layout/step_numbers.h"
#include "tests/src/cuda/device_block.h"
#include "tests/src/tested_precision.h"

namespace spillway::cuda {

using test::expect_products;
using test::expect_within;
using test::has_float_tensors;
using test::is_bf16;
using test::random_values;
using test::rounded;
using test::tested_precision;
using test::Values;

inline constexpr bool kIsCuda = true;

/// Like expect_within(), with a `tolerance` for float arithmetic on the host. Allows twice that,
/// since powers and exponentials are less exact on a device.
inline void expect_near(const Values& actual, const Values& expected, double tolerance) {
  expect_within(actual, expected, 2 * tolerance);
}

/// Returns the tolerance of sums of `terms` products of numbers in [-1, 1], before they are rounded
/// to the tensor's elements.
///
/// The reference is the definition in double, so all of the tolerance is for the device.
/// - fp32 sums in float: sum_tolerance().
/// - bf16: products are exact in float, but tensor cores truncate sums instead of rounding them.
///   Errors are twice as large and have one sign: four times the tolerance.
/// - TF32 has 10 fraction bits and may truncate, so that a factor errs by up to 2^-10 and a product
///   by 2^-9, about 2^-10 in the root mean square. The n products, 1/3 each in the root mean
///   square, err together by sqrt(n) / 3 * 2^-10 for random signs, and as much again for the common
///   direction. Six times that covers the worst of many sums. The error of the sums is small beside
///   that.
[[nodiscard]] inline double product_tolerance(std::size_t terms) {
  const double rounding = host::sum_tolerance(terms);
  switch (tested_precision()) {
    case Precision::kFp32:
      return rounding;
    case Precision::kTf32:
      return rounding + std::sqrt(static_cast<double>(terms)) * std::ldexp(4.0, -10);
    case Precision::kBf16:
      break;
  }
  return 4 * rounding;
}

/// The host backend, as the reference for the device's results.
class HostRunner : public host::KernelRunner {
 public:
  using host::KernelRunner::backend;
  using host::KernelRunner::parameters;
  using host::KernelRunner::parts;
  using host::KernelRunner::run;
  using host::KernelRunner::tensor;
  using host::KernelRunner::values;
  void TestBody() override {}
};

/// Runs our kernels on the device, and on the host with the same numbers. The device may be
/// emulated on the CPU (tests/src/cuda/processor).
class OperationRunner : public ::testing::Test {
 protected:
  void SetUp() override {
    um::check(cudaStreamCreateWithFlags(&machine_.stream, cudaStreamNonBlocking));
    machine_.numbers = &numbers_.emplace(machine_.stream);
  }
  void TearDown() override {
    numbers_.reset();
    if (machine_.stream != nullptr) um::check(cudaStreamDestroy(machine_.stream));
  }

  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] HostRunner& host() { return host_; }

  [[nodiscard]] static Block bytes(um::Bytes host, um::Bytes device) {
    return {.host = host::Block{host}, .device = DeviceBlock{device}};
  }
  [[nodiscard]] static Block bytes(um::Bytes size) { return bytes(size, size); }
  template <class T>
  [[nodiscard]] static Block numbers(const std::vector<T>& values) {
    Block block = bytes(um::Bytes{values.size() * sizeof(T)});
    std::memcpy(block.host.data(), values.data(), values.size() * sizeof(T));
    block.device.write(std::as_bytes(std::span{values}));
    return block;
  }
  [[nodiscard]] Block tensor(const TensorShape& shape) {
    return {.host = host_.tensor(shape), .device = DeviceBlock{layout_.tensor_bytes(shape)}};
  }
  /// Requires: the values are rounded.
  [[nodiscard]] Block tensor(const TensorShape& shape, const Values& values) {
    Block block{.host = host_.tensor(shape, values),
                .device = DeviceBlock{layout_.tensor_bytes(shape)}};
    std::vector<std::byte> bytes(layout_.tensor_bytes(shape).count());
    for_each(shape, [&](std::size_t canonical, std::size_t stored) {
      put(bytes, stored, static_cast<float>(values[canonical]));
    });
    block.device.write(bytes);
    return block;
  }
  [[nodiscard]] Block parameters(const ParameterSpec& spec) {
    return {.host = host_.parameters(spec), .device = DeviceBlock{layout_of(spec).bytes()}};
  }
  [[nodiscard]] Block parameters(const ParameterSpec& spec, const Values& values) {
    Block block{.host = host_.parameters(spec, values),
                .device = DeviceBlock{layout_of(spec).bytes()}};
    std::vector<std::byte> bytes(layout_of(spec).bytes().count());
    import_block(machine_.precision, spec, host::to_floats(values), bytes);
    block.device.write(bytes);
    return block;
  }
  /// Returns blocks of a gradient or of optimizer state, one per part.
  [[nodiscard]] std::vector<Block> parts(const ParameterSpec& spec, std::size_t count) {
    return parts_like(spec, host_.parts(spec, count));
  }
  [[nodiscard]] std::vector<Block> parts(const ParameterSpec& spec, std::size_t count,
                                         const Values& values) {
    std::vector<Block> blocks = parts_like(spec, host_.parts(spec, count, values));
    std::vector<std::byte> bytes(layout_of(spec).bytes().count());
    import_block(machine_.precision, spec, host::to_floats(values), bytes);
    for (std::size_t i = 0; i < count; ++i) {
      blocks[i].device.write(floats_of(bytes, spec, {.index = i, .count = count}));
    }
    return blocks;
  }
  [[nodiscard]] Values values(const ParameterSpec& spec, const std::vector<Block>& parts) const {
    std::vector<std::byte> all;
    for (const Block& block : parts) {
      const std::vector<std::byte> bytes = block.bytes();
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    std::vector<float> numbers(element_count(spec));
    export_block(machine_.precision, spec, all, numbers);
    std::vector<std::byte> expected(layout_of(spec).bytes().count());
    import_block(machine_.precision, spec, numbers, expected);
    expect_same_floats(all, expected, "padding is zero");
    return {numbers.begin(), numbers.end()};
  }
  /// Returns the samples of `batch` staged for a LoadBatch.
  [[nodiscard]] DeviceBlock staged(const LoadBatch& op, const Batch& batch) const {
    const StagedBatch layout{machine_.precision, op.staged()};
    std::vector<std::byte> bytes(layout.bytes().count());
    layout.fill(op.staged(), batch, bytes);
    DeviceBlock block{layout.bytes()};
    block.write(bytes);
    return block;
  }
  template <class Op>
  [[nodiscard]] Block saved_by(const Op& op) {
    return bytes(host_.backend().saved_bytes(op), saved_bytes(machine_, op));
  }

  /// Returns the values of a device tensor. Fails the test unless its padding is zero.
  [[nodiscard]] Values values(const TensorShape& shape, const Block& block) const {
    std::vector<std::byte> bytes = block.bytes();
    Values result(shape.elements());
    for_each(shape, [&](std::size_t canonical, std::size_t stored) {
      result[canonical] = static_cast<double>(get(bytes, stored));
      put(bytes, stored, 0.F);
    });
    for (std::size_t i = 0; i < bytes.size() / (is_bf16() ? sizeof(Bfloat16) : sizeof(float));
         ++i) {
      const float left = get(bytes, i);
      if (left == 0) continue;  // also -0
      ADD_FAILURE() << "padding of the tensor is zero, and not " << left << " at " << i;
      break;
    }
    return result;
  }
  /// Returns the floats of a device block. Fails the test unless importing these floats gives the
  /// same block, including padding and, with `has_copy`, the bfloat16 copy.
  [[nodiscard]] Values values(const ParameterSpec& spec, const Block& block,
                              bool has_copy = false) const {
    std::vector<float> numbers(element_count(spec));
    const std::vector<std::byte> actual = block.bytes();
    export_block(machine_.precision, spec, actual, numbers);
    std::vector<std::byte> expected(actual.size());
    import_block(machine_.precision, spec, numbers, expected);
    const std::size_t floats = layout_of(spec).float_count() * sizeof(float);
    expect_same_floats(std::span{actual}.first(floats), expected, "padding is zero");
    if (has_copy) {
      EXPECT_TRUE(std::equal(actual.begin() + static_cast<std::ptrdiff_t>(floats), actual.end(),
                             expected.begin() + static_cast<std::ptrdiff_t>(floats)))
          << "the copy is up to date";
    }
    return {numbers.begin(), numbers.end()};
  }

  /// Fails the test unless the device has the host's numbers, up to one rounding of a tensor and
  /// `tolerance`, which covers both sides.
  void expect_same_on_host(const ParameterSpec& spec, Block& block, double tolerance = 0) {
    host::expect_near(values(spec, block), host_.values(spec, block.host), tolerance);
  }
  void expect_same_on_host(const TensorShape& shape, Block& block, double tolerance = 0) {
    const Values on_host = host_.values(shape, block.host);
    if (tolerance == 0) {
      expect_near(values(shape, block), on_host, 0);
    } else {
      expect_within(values(shape, block), on_host, tolerance);
    }
  }

  /// Runs both, the device with a workspace of exactly the requested size. Fails the test if the
  /// device writes past the end of a block.
  template <class Op>
  void run(const Op& op, const std::vector<Block*>& operands, const StepContext& context = {},
           bool is_recomputation = false) {
    std::vector<host::Block*> blocks;
    for (Block* block : operands) blocks.push_back(&block->host);
    host_.run(op, blocks, context, is_recomputation);
    run_tested(op, operands, context, is_recomputation);
  }
  /// Runs both; the device's batch is staged in device memory.
  void run(LoadBatch op, std::vector<Block*> operands, const StepContext& context) {
    host_.run(op, {&operands[0]->host, &operands[1]->host}, context);
    op.is_staged = true;
    op.staged_samples = op.first_sample + op.x.batch;
    Block waiting{.host = host::Block{um::Bytes{}}, .device = staged(op, *context.batch)};
    operands.insert(operands.begin(), &waiting);
    run_tested(op, operands, context);
  }
  /// Runs only on the device.
  template <class Op>
  void run_tested(const Op& op, const std::vector<Block*>& operands,
                  const StepContext& context = {}, bool is_recomputation = false) {
    um::Bytes workspace;
    if constexpr (requires { workspace_of(machine_, op); }) workspace = workspace_of(machine_, op);
    const auto kernel = make_kernel(machine_, op);
    numbers_->begin_step(context);
    run_kernel(*kernel, workspace, operands, context, is_recomputation);
  }

  static void run_kernel(Kernel& kernel, um::Bytes workspace_size,
                         const std::vector<Block*>& operands, const StepContext& context,
                         bool is_recomputation) {
    DeviceBlock workspace{workspace_size};
    std::vector<std::byte*> addresses;
    for (Block* block : operands) addresses.push_back(block->device.data());
    kernel.run({.operands = addresses,
                .workspace = workspace.data(),
                .context = &context,
                .is_recomputation = is_recomputation});
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_TRUE(workspace.guard_is_intact()) << "the workspace is as large as the kernel said";
    for (const Block* block : operands) EXPECT_TRUE(block->device.guard_is_intact());
  }

 private:
  [[nodiscard]] std::vector<Block> parts_like(const ParameterSpec& spec,
                                              std::vector<host::Block> host) const {
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < host.size(); ++i) {
      const ParameterPart part{.index = i, .count = host.size()};
      blocks.push_back(
          {.host = std::move(host[i]), .device = DeviceBlock{layout_of(spec).part_bytes(part)}});
    }
    return blocks;
  }
  // Returns the bytes of a part of a block in host memory.
  [[nodiscard]] std::span<const std::byte> floats_of(std::span<const std::byte> block,
                                                     const ParameterSpec& spec,
                                                     const ParameterPart& part) const {
    const FloatRange range = layout_of(spec).cuts().range(part);
    return block.subspan(range.begin * sizeof(float), range.count() * sizeof(float));
  }
  [[nodiscard]] ParameterLayout layout_of(const ParameterSpec& spec) const {
    return {machine_.precision, spec};
  }
  template <class Visit>
  static void for_each(const TensorShape& shape, const Visit& visit) {
    const auto& [channels, height, width, form] = shape.image;
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
  static void put(std::vector<std::byte>& bytes, std::size_t element, float value) {
    const Bfloat16 half = value;
    if (is_bf16()) {
      std::memcpy(bytes.data() + element * sizeof half, &half, sizeof half);
    } else {
      std::memcpy(bytes.data() + element * sizeof value, &value, sizeof value);
    }
  }
  [[nodiscard]] static float get(const std::vector<std::byte>& bytes, std::size_t element) {
    float value = 0;
    Bfloat16 half;
    if (is_bf16()) {
      std::memcpy(&half, bytes.data() + element * sizeof half, sizeof half);
      return half;
    }
    std::memcpy(&value, bytes.data() + element * sizeof value, sizeof value);
    return value;
  }

  // Fails the test where a float differs from the expected one; -0 and 0 are the same.
  static void expect_same_floats(std::span<const std::byte> actual,
                                 const std::vector<std::byte>& expected, const char* why) {
    for (std::size_t at = 0; at + sizeof(float) <= actual.size(); at += sizeof(float)) {
      float is = 0;
      float should_be = 0;
      std::memcpy(&is, actual.data() + at, sizeof is);
      std::memcpy(&should_be, expected.data() + at, sizeof should_be);
      ASSERT_EQ(is, should_be) << why << ", at byte " << at;
    }
  }

  Machine machine_{.precision = tested_precision()};
  std::optional<StepNumbers> numbers_;
  Layout layout_{machine_.precision};
  HostRunner host_;
};

}  // namespace spillway::cuda
