// Our GPU kernels beyond the tests of operations: limits, sums of ranks, staged batches, several
// updates in a launch.
#include "src/cuda/kernels/kernels.h"

#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/cuda/kernels/sequences/attention_kernels.h"
#include "src/ranks/communicator.h"
#include "tests/refusal.h"
#include "tests/src/every_optimizer.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::cuda {
namespace {

// Layers that our GPU kernels do not support are reported before anything is launched.
class KernelLimits : public KernelRunner {
 protected:
  template <class Op>
  [[nodiscard]] std::string refusal_of(const Op& op) {
    return test::refusal([&] { return make_kernel(machine(), op) != nullptr; });
  }
};

PoolForward pool_of(nets::PoolKind kind, const nets::Extent& kernel) {
  return {.x = {.batch = 1, .image = {.channels = 1, .height = 32, .width = 32}},
          .y = {.batch = 1, .image = {.channels = 1, .height = 1, .width = 1}},
          .pool = {.kind = kind, .kernel = kernel, .stride = nets::square(32)}};
}

// One byte stores a maximum's position in its window.
TEST_F(KernelLimits, AreAByteOfPixelsOfAMaximum) {
  EXPECT_EQ(refusal_of(pool_of(nets::PoolKind::kMax, nets::square(16))), "accepted");
  EXPECT_EQ(refusal_of(pool_of(nets::PoolKind::kAverage, nets::square(32))), "accepted");
  EXPECT_EQ(refusal_of(pool_of(nets::PoolKind::kMax, {.height = 8, .width = 33})),
            "max pooling over 8x33 pixels is too large for a GPU; it takes windows of up to 256 "
            "pixels");
}

// Three lines of channels with a border of half a window on either side: 48 KiB of floats.
TEST_F(KernelLimits, AreTheChannelsThatFitIntoSharedMemory) {
  const auto norm_of = [](std::size_t channels) {
    const TensorShape x{.batch = 1, .image = {.channels = channels, .height = 1, .width = 1}};
    return LrnForward{.x = x, .norm = {.size = 9}};
  };
  EXPECT_EQ(refusal_of(norm_of(4088)), "accepted");
  EXPECT_EQ(refusal_of(norm_of(4096)),
            "local response norm over 4104 channels, with those that its windows stick out, is too "
            "large for a GPU; it takes up to 4096");
}

// A thread keeps 8 groups of a row, and a block has a row.
TEST_F(KernelLimits, AreTheNumbersOfARowThatABlockKeeps) {
  const auto norm_of = [](std::size_t channels) {
    return RowNormBackward{.x = {1, nets::sequence(2, channels)}, .epsilon = 1e-5F};
  };
  EXPECT_EQ(refusal_of(norm_of(16384)), "accepted");
  EXPECT_EQ(refusal_of(norm_of(16385)),
            "a norm over rows of 16385 numbers is too wide for a GPU; it takes up to 16384");
}

AttentionForward of_width(std::size_t width) {
  return {.geometry = {.x = {.batch = 1, .image = nets::sequence(9, 3 * width)},
                       .heads = {.heads = 1, .kv_heads = 1}}};
}

// Tolerance of sums of up to 153 products of numbers in [-1, 1].
constexpr double kTolerance = 3e-5;

class WidestHead : public KernelRunner {};

TEST_F(WidestHead, FitsIntoSharedMemory) {
  const AttentionForward forward = of_width(kWidestHead);
  Block x = tensor(forward.geometry.x, random_values(forward.geometry.x.elements(), 1));
  Block y = tensor(forward.geometry.y());
  Block saved = saved_by(forward);
  run(forward, {&x, &y, &saved});
  expect_same_on_host(forward.geometry.y(), y, kTolerance);
  Block dy = tensor(forward.geometry.y(), random_values(forward.geometry.y().elements(), 2));
  Block dx = tensor(forward.geometry.x);
  run(AttentionBackward{.geometry = forward.geometry}, {&x, &y, &dy, &saved, &dx});
  // In bfloat16, y is rounded by 2^-9; a whole head sums its product with dy.
  const double rounding =
      has_float_tensors() ? 0 : std::ldexp(2 * std::sqrt(static_cast<double>(kWidestHead)), -9);
  expect_same_on_host(forward.geometry.x, dx, kTolerance + rounding);
}

TEST_F(WidestHead, IsNamedWhereOneIsWider) {
  EXPECT_EQ(
      test::refusal([&] { return make_kernel(machine(), of_width(kWidestHead + 1)) != nullptr; }),
      "attention's heads of 154 numbers are too wide for a GPU; it takes up to 153");
}

class UndroppedAttention : public KernelRunner {};

// All kernels together may have 16384 step numbers.
TEST_F(UndroppedAttention, NeedsNoNumberOfTheStep) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (int i = 0; i < 16385; ++i) kernels.push_back(make_kernel(machine(), of_width(4)));
  const AttentionBackward backward{.geometry = of_width(4).geometry};
  EXPECT_EQ(test::refusal([&] { return make_kernel(machine(), backward) != nullptr; }), "accepted");
}

// Kernels for ranks: device results must equal the host's, bit by bit.
class NumberSums : public KernelRunner {
 protected:
  [[nodiscard]] static std::vector<float> drawn(std::size_t count, unsigned seed) {
    return host::to_floats(host::random_values(count, seed));
  }
  [[nodiscard]] static float* floats(Block& block) {
    return reinterpret_cast<float*>(block.device.data());
  }
};

// None, one, an incomplete block, and more than there are threads.
constexpr std::array<std::size_t, 4> kCounts{0, 1, 1000, 1U << 16U};

TEST_F(NumberSums, AddAsTheHost) {
  for (const std::size_t count : kCounts) {
    std::vector<float> sum = drawn(count + 1, 1);
    const std::vector<float> other = drawn(count + 1, 2);
    Block sums = numbers(sum);
    Block others = numbers(other);
    add_numbers(machine().stream, floats(sums), floats(others), count);
    host_number_kernels().add(std::span{sum}.first(count), std::span{other}.first(count));
    EXPECT_EQ(sums.numbers<float>(), sum);
  }
}

// Starts at the second number, which has only a float's alignment.
TEST_F(NumberSums, DivideAsTheHost) {
  for (const std::size_t count : kCounts) {
    std::vector<float> number = drawn(count + 2, 3);
    Block divided = numbers(number);
    divide_numbers(machine().stream, floats(divided) + 1, 7.0F, count);
    host_number_kernels().divide(std::span{number}.subspan(1, count), 7.0F);
    EXPECT_EQ(divided.numbers<float>(), number);
  }
}

TEST_F(NumberSums, FillWhatTheyAreTold) {
  std::vector<float> number = drawn(300, 4);
  Block filled = numbers(number);
  fill_numbers(machine().stream, floats(filled) + 3, -2.5F, 290);
  host_number_kernels().fill(std::span{number}.subspan(3, 290), -2.5F);
  EXPECT_EQ(filled.numbers<float>(), number);
}

class CudaBatchLoading : public KernelRunner, public ::testing::WithParamInterface<TensorShape> {
 protected:
  [[nodiscard]] Batch batch(unsigned seed) const {
    const Values images = host::random_values(shape_.elements(), seed);
    Batch batch{.images{images.begin(), images.end()}, .labels = {}};
    for (std::size_t n = 0; n < shape_.batch; ++n) {
      batch.labels.push_back(static_cast<std::int32_t>(n + seed) - 1);
    }
    return batch;
  }

  const TensorShape shape_ = GetParam();
};

// Runs one batch after the other.
TEST_P(CudaBatchLoading, PutsEachBatchIntoTheLayout) {
  const LoadBatch op{.x = shape_, .is_staged = true};
  const std::unique_ptr<Kernel> kernel = make_kernel(machine(), op);
  std::vector<Block> x;
  std::vector<Block> labels;
  const std::vector<Batch> batches{batch(0), batch(1)};
  for (const unsigned i : {0U, 1U}) {
    x.push_back(tensor(shape_));
    labels.push_back(bytes(um::Bytes{shape_.batch * sizeof(std::int32_t)}));
    const StepContext context{.batch = &batches[i]};
    DeviceBlock staged = this->staged(op, batches[i]);
    const std::vector<std::byte*> operands{staged.data(), x[i].device.data(),
                                           labels[i].device.data()};
    kernel->run({.operands = operands, .workspace = nullptr, .context = &context});
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    host().run(LoadBatch{.x = shape_}, {&x[i].host, &labels[i].host}, context);
  }
  for (const unsigned i : {0U, 1U}) {
    expect_same_on_host(shape_, x[i]);
    EXPECT_EQ(labels[i].device.bytes(), labels[i].host.bytes());
    EXPECT_TRUE(x[i].device.guard_is_intact());
    EXPECT_TRUE(labels[i].device.guard_is_intact());
  }
}

// Staged bytes take a quarter of staged floats, and half of staged bfloat16.
TEST_P(CudaBatchLoading, StagesBytesAsTheyAre) {
  const std::size_t images = shape_.elements();
  const auto staged = [&](Precision precision, bool has_bytes) {
    const StagedBatch layout{precision, {.x = shape_, .is_staged = true, .has_bytes = has_bytes}};
    return (layout.bytes() - layout.images(0)).count();
  };
  EXPECT_EQ(staged(Precision::kFp32, true), images);
  EXPECT_EQ(staged(Precision::kBf16, true), images);
  EXPECT_EQ(staged(Precision::kFp32, false), 4 * images);
  EXPECT_EQ(staged(Precision::kBf16, false), 2 * images);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CudaBatchLoading,
                         ::testing::Values(TensorShape{3, {3, 4, 5}}, TensorShape{1, {20, 1, 1}},
                                           TensorShape{8, {3, 256, 256}}));

// The parameters of one update.
struct Updated {
  ParameterSpec spec;
  ParameterPart part = {};
};

// Updates of several sizes, with and without weight decay, some of parts; more than fit in one
// launch.
std::vector<Updated> all_updated() {
  std::vector<Updated> all;
  for (std::size_t i = 1; i <= 12; ++i) {
    all.push_back({.spec = BatchNormParameters{7 * i}});
    all.push_back({.spec = ConvolutionParameters{3 * i, 5, nets::square(3), i % 2 == 0}});
    all.push_back({.spec = LinearParameters{10 * i, {6, 2, 2}, true}});
  }
  for (std::size_t i = 0; i < 3; ++i) {
    all.push_back(
        {.spec = LinearParameters{50, {6, 2, 2}, true}, .part = {.index = i, .count = 3}});
  }
  return all;
}

class TogetherUpdated : public KernelRunner {
 protected:
  // Returns `numbers` blocks per update: parameters, optimizer state and gradient.
  [[nodiscard]] std::vector<std::vector<Block>> blocks(std::size_t numbers) {
    std::vector<std::vector<Block>> all;
    unsigned seed = 0;
    for (const auto& [spec, part] : all_updated()) {
      std::vector<Block>& own = all.emplace_back();
      for (std::size_t i = 0; i < numbers; ++i) {
        Values values = host::random_values(element_count(spec), ++seed);
        for (double& value : values) value *= value;  // second moments are not negative
        if (i == 0 || part.count == 1) {
          own.push_back(parameters(spec, values));
        } else {
          own.push_back(std::move(parts(spec, part.count, values)[part.index]));
        }
      }
    }
    return all;
  }
  static std::vector<std::byte*> operands(const UpdateParameters& update,
                                          std::vector<Block>& blocks) {
    std::vector<std::byte*> addresses;
    for (Block& block : blocks) addresses.push_back(block.device.data());
    return test::operands_of_update(update, addresses, addresses.front());
  }

  void expect_bits_of_one_each(const OptimizerOptions& options) {
    const std::size_t numbers = states_of(options).size() + 2;
    std::vector<std::vector<Block>> one_each = blocks(numbers);
    std::vector<std::vector<Block>> together = blocks(numbers);
    const StepContext context{.step = 3, .learning_rate = 0.25F};
    std::vector<UpdateParameters> ops;
    std::vector<std::byte*> all;
    const std::vector<Updated> updated = all_updated();
    for (std::size_t i = 0; i < updated.size(); ++i) {
      const UpdateParameters op{
          .parameters = updated[i].spec, .options = options, .part = updated[i].part};
      const auto kernel = make_kernel(machine(), op);
      machine().numbers->begin_step(context);
      kernel->run({.operands = operands(op, one_each[i])});
      ops.push_back(op);
      for (std::byte* operand : operands(op, together[i])) all.push_back(operand);
    }
    const auto kernel = make_kernel(machine(), ops);
    machine().numbers->begin_step(context);
    kernel->run({.operands = all});
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (std::size_t n = 0; n < numbers; ++n) {
        EXPECT_EQ(together[i][n].bytes(), one_each[i][n].bytes()) << i << ' ' << n;
        EXPECT_TRUE(together[i][n].device.guard_is_intact());
      }
    }
    EXPECT_NE(together[0][0].bytes(), blocks(numbers)[0][0].bytes());
  }
};

TEST_F(TogetherUpdated, HaveTheBitsOfOneEach) {
  for (const OptimizerOptions& options : test::every_optimizer()) {
    SCOPED_TRACE(test::printed(options));
    expect_bits_of_one_each(options);
  }
}

}  // namespace
}  // namespace spillway::cuda
