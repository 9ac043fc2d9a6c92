#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/host/host_backend.h"
#include "tests/src/printed_parameters.h"

namespace spillway::host {

/// Numbers in the canonical order: (N, C, H, W), or that of parameter.h.
using Values = std::vector<double>;

/// Uniform in [-1, 1], rounded to float so that kernels and references start from the same numbers.
inline Values random_values(std::size_t count, unsigned seed) {
  std::mt19937 engine{seed};
  std::uniform_real_distribution<float> distribution{-1.F, 1.F};
  Values values(count);
  for (double& value : values) value = static_cast<double>(distribution(engine));
  return values;
}

inline std::vector<float> to_floats(const Values& values) { return {values.begin(), values.end()}; }

/// Memory of a kernel, aligned to 64 bytes as the runtime's is. All its bytes are 0xFF at first,
/// which read as floats are NaN, and guard bytes follow it. It keeps its address when moved.
class Block {
 public:
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Block(Block&&) = default;
  Block& operator=(Block&&) = default;
  ~Block() = default;
  explicit Block(um::Bytes size)
      : size_{size.count()}, bytes_(size_ + kGuard + kAlignment, std::byte{0xFF}) {}

  [[nodiscard]] std::byte* data() {
    void* start = bytes_.data();
    std::size_t space = bytes_.size();
    return static_cast<std::byte*>(std::align(kAlignment, size_ + kGuard, start, space));
  }
  [[nodiscard]] std::span<float> floats() {
    return {reinterpret_cast<float*>(data()), size_ / sizeof(float)};
  }
  [[nodiscard]] std::vector<std::byte> bytes() { return {data(), data() + size_}; }
  template <class T>
  [[nodiscard]] std::vector<T> numbers() {
    std::vector<T> result(size_ / sizeof(T));
    std::memcpy(result.data(), data(), result.size() * sizeof(T));
    return result;
  }
  [[nodiscard]] bool guard_is_intact() {
    return std::all_of(data() + size_, data() + size_ + kGuard,
                       [](std::byte b) { return b == std::byte{0xFF}; });
  }

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr std::size_t kAlignment = 64;
  std::size_t size_;
  std::vector<std::byte> bytes_;
};

/// Runs operations on the host backend and moves values in and out of its layout.
class KernelRunner : public ::testing::Test {
 protected:
  explicit KernelRunner(Precision precision = Precision::kFp32)
      : backend_{std::min<std::size_t>(usable_cpus(), 2), precision} {}

  [[nodiscard]] const HostBackend& backend() const { return backend_; }

  /// Bytes that a kernel writes, and numbers that it reads, which are no tensor.
  [[nodiscard]] static Block bytes(um::Bytes size) { return Block{size}; }
  template <class T>
  [[nodiscard]] static Block numbers(const std::vector<T>& values) {
    Block block{um::Bytes{values.size() * sizeof(T)}};
    std::memcpy(block.data(), values.data(), values.size() * sizeof(T));
    return block;
  }

  [[nodiscard]] Block tensor(const TensorShape& shape) const {
    return Block{backend_.tensor_bytes(shape)};
  }
  [[nodiscard]] Block tensor(const TensorShape& shape, const Values& values) const {
    Block block = tensor(shape);
    std::fill_n(block.data(), backend_.tensor_bytes(shape).count(), std::byte{});
    with_numbers(shape, block, [&](auto* numbers) {
      for_each(shape, [&](std::size_t canonical, std::size_t stored) {
        numbers[stored] = static_cast<float>(values[canonical]);
      });
    });
    return block;
  }
  /// The values of a tensor. Fails the test unless its padding is zero.
  [[nodiscard]] Values values(const TensorShape& shape, Block& block) const {
    Values result(shape.elements());
    with_numbers(shape, block, [&](const auto* numbers) {
      std::vector<float> rest{numbers, numbers + backend_.layout().elements(shape)};
      for_each(shape, [&](std::size_t canonical, std::size_t stored) {
        result[canonical] = static_cast<double>(rest[stored]);
        rest[stored] = 0;
      });
      EXPECT_TRUE(std::all_of(rest.begin(), rest.end(), [](float value) { return value == 0; }))
          << "padding of the tensor is zero";
    });
    return result;
  }

  [[nodiscard]] Block parameters(const ParameterSpec& spec) const {
    return Block{backend_.parameter_bytes(spec)};
  }
  [[nodiscard]] Block parameters(const ParameterSpec& spec, const Values& values) const {
    Block block = parameters(spec);
    import(spec, to_floats(values), block);
    return block;
  }
  [[nodiscard]] Values values(const ParameterSpec& spec, Block& block,
                              bool /*has_copy*/ = false) const {
    std::vector<float> result(element_count(spec));
    std::byte* const address = block.data();
    backend_.export_parameters(spec, {&address, 1}, result);
    // Imported again, it has the same bits: so all that is not a parameter is zero.
    Block again = parameters(spec);
    import(spec, result, again);
    EXPECT_EQ(again.bytes(), block.bytes()) << "padding of the parameters is zero";
    return {result.begin(), result.end()};
  }

  /// Blocks of a gradient or of what an optimizer keeps, one for each part.
  [[nodiscard]] std::vector<Block> parts(const ParameterSpec& spec, std::size_t count) const {
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < count; ++i) {
      blocks.emplace_back(backend_.parameter_part_bytes(spec, {.index = i, .count = count}));
    }
    return blocks;
  }
  [[nodiscard]] std::vector<Block> parts(const ParameterSpec& spec, std::size_t count,
                                         const Values& values) const {
    std::vector<Block> blocks = parts(spec, count);
    backend_.import_parameters(spec, to_floats(values), addresses_of(blocks));
    return blocks;
  }
  [[nodiscard]] Values values(const ParameterSpec& spec, std::vector<Block>& parts) const {
    std::vector<float> result(element_count(spec));
    backend_.export_parameters(spec, addresses_of(parts), result);
    std::vector<Block> again = this->parts(spec, parts.size(), {result.begin(), result.end()});
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(again[i].bytes(), parts[i].bytes()) << "padding of part " << i << " is zero";
    }
    return {result.begin(), result.end()};
  }

  /// Nothing to say here: this is the host.
  template <class Shape>
  void expect_same_on_host(const Shape& /*shape*/, const Block& /*block*/,
                           double /*tolerance*/ = 0) const {}
  [[nodiscard]] Block saved_by(const Operation& operation) const {
    return Block{backend_.saved_bytes(operation)};
  }

  /// Runs the kernel on `operands`, in a workspace of exactly the size it asked for. Fails the test
  /// when it writes behind a block.
  void run(const Operation& operation, const std::vector<Block*>& operands,
           const StepContext& context = {}, bool is_recomputation = false) const {
    run_with(backend_.algorithms(operation).at(0).name, operation, operands, context,
             is_recomputation);
  }
  /// By the backend under test only, which is this one.
  void run_tested(const Operation& operation, const std::vector<Block*>& operands,
                  const StepContext& context = {}) const {
    run(operation, operands, context);
  }
  void run_with(std::string_view algorithm, const Operation& operation,
                const std::vector<Block*>& operands, const StepContext& context = {},
                bool is_recomputation = false) const {
    um::Bytes workspace_size;
    for (const AlgorithmInfo& info : backend_.algorithms(operation)) {
      if (info.name == algorithm) workspace_size = info.workspace;
    }
    Block workspace{workspace_size};
    std::vector<std::byte*> addresses;
    addresses.reserve(operands.size());
    for (Block* block : operands) addresses.push_back(block->data());
    backend_.prepare(operation, algorithm)
        ->run({.operands = addresses,
               .workspace = workspace.data(),
               .context = &context,
               .is_recomputation = is_recomputation});
    EXPECT_TRUE(workspace.guard_is_intact()) << "the workspace is as large as the kernel said";
    for (Block* block : operands) EXPECT_TRUE(block->guard_is_intact());
  }
  /// Fails the test unless each algorithm gives the same bits twice.
  void expect_same_bits(const Operation& operation, Block& a, Block& b, Block first,
                        Block second) const {
    const std::vector<AlgorithmInfo> algorithms = backend_.algorithms(operation);
    ASSERT_FALSE(algorithms.empty());
    for (const AlgorithmInfo& algorithm : algorithms) {
      run_with(algorithm.name, operation, {&a, &b, &first});
      run_with(algorithm.name, operation, {&a, &b, &second});
      EXPECT_EQ(first.bytes(), second.bytes()) << algorithm.name;
    }
  }

 private:
  void import(const ParameterSpec& spec, const std::vector<float>& values, Block& block) const {
    std::byte* const address = block.data();
    backend_.import_parameters(spec, values, {&address, 1});
  }
  static std::vector<std::byte*> addresses_of(std::vector<Block>& blocks) {
    std::vector<std::byte*> addresses;
    addresses.reserve(blocks.size());
    for (Block& block : blocks) addresses.push_back(block.data());
    return addresses;
  }
  // The numbers of tokens are floats in each precision.
  template <class Use>
  void with_numbers(const TensorShape& shape, Block& block, const Use& use) const {
    if (shape.image.form == nets::Form::kTokens) {
      use(reinterpret_cast<float*>(block.data()));
    } else {
      with_elements(backend_.layout(), [&](auto elements) { use(elements(block.data())); });
    }
  }
  template <class Visit>
  void for_each(const TensorShape& shape, const Visit& visit) const {
    const auto& [channels, height, width, form] = shape.image;
    const Layout& layout = backend_.layout();
    const std::size_t image = layout.padded(shape.image).elements();
    std::size_t canonical = 0;
    for (std::size_t n = 0; n < shape.batch; ++n) {
      for (std::size_t c = 0; c < channels; ++c) {
        for (std::size_t h = 0; h < height; ++h) {
          for (std::size_t w = 0; w < width; ++w) {
            visit(canonical++, n * image + layout.index(shape.image, c, h, w));
          }
        }
      }
    }
  }

  HostBackend backend_;
};

/// Fails the test unless each value is within `tolerance` of the expected one.
inline void expect_near(const Values& actual, const Values& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance) << "at " << i;
  }
}

/// For a float sum of `terms` products of numbers in [-1, 1]: partial sums are around sqrt(terms) /
/// 3 and each of the `terms` roundings, of random sign, errs by up to 2^-24 of that, which makes
/// terms / 3 * 2^-24 in all; twelve times as much for the worst of many sums, and at least some
/// roundings of numbers around 1.
inline double sum_tolerance(std::size_t terms) {
  return 4.0 * static_cast<double>(std::max<std::size_t>(terms, 8)) * std::ldexp(1.0, -24);
}

}  // namespace spillway::host
