// Our kernels in layers of cuDNN and cuBLASLt: biases, ReLUs and sums of gradients.
#include <algorithm>

#include "src/cuda/kernels/kernels.h"
#include "tests/src/cuda/processor/kernel_runner.h"

namespace spillway::cuda {
namespace {

// Shapes with odd channels and rows, with more groups than a block has threads across, with many
// chunks.
class ChannelKernels : public KernelRunner, public ::testing::WithParamInterface<TensorShape> {
 protected:
  [[nodiscard]] std::size_t channel(std::size_t i) const {
    const auto& [channels, height, width, form] = shape_.image;
    return i / (height * width) % channels;
  }
  // Returns a vector in canonical order, padded with zeros.
  [[nodiscard]] DeviceBlock vector_of(const Values& values) const {
    std::vector<float> padded(matrix_.channels, 0.F);
    std::copy(values.begin(), values.end(), padded.begin());
    DeviceBlock block{um::Bytes{padded.size() * sizeof(float)}};
    block.write(std::as_bytes(std::span{padded}));
    return block;
  }

  const TensorShape shape_ = GetParam();
  const ChannelMatrix matrix_ = matrix_of(shape_);
  const Values x_ = random_values(shape_.elements(), 1);
  const Values bias_ = host::random_values(shape_.image.channels, 2);
};

TEST_P(ChannelKernels, AddABiasAndRectify) {
  for (const bool has_bias : {false, true}) {
    for (const bool relu : {false, true}) {
      Block y = tensor(shape_, x_);
      DeviceBlock bias = vector_of(bias_);
      add_bias_relu(machine(), matrix_, y.device.data(),
                    has_bias ? reinterpret_cast<const float*>(bias.data()) : nullptr, relu);
      Values expected = x_;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (has_bias) {
          expected[i] = static_cast<double>(static_cast<float>(expected[i]) +
                                            static_cast<float>(bias_[channel(i)]));
        }
        if (relu) expected[i] = std::max(expected[i], 0.0);
      }
      expect_near(values(shape_, y), expected, 0);
    }
  }
}

TEST_P(ChannelKernels, SumEachChannel) {
  Block x = tensor(shape_, x_);
  DeviceBlock sums{um::Bytes{matrix_.channels * sizeof(float)}};
  DeviceBlock workspace{channel_sums_workspace(matrix_)};
  channel_sums(machine(), matrix_, x.device.data(), workspace.data(),
               reinterpret_cast<float*>(sums.data()));
  Values expected(matrix_.channels, 0.0);
  for (std::size_t i = 0; i < x_.size(); ++i) expected[channel(i)] += x_[i];
  const std::vector<float> actual = sums.numbers<float>();
  host::expect_near({actual.begin(), actual.end()}, expected, host::sum_tolerance(matrix_.rows));
}

INSTANTIATE_TEST_SUITE_P(Shapes, ChannelKernels,
                         ::testing::Values(TensorShape{3, {3, 4, 5}}, TensorShape{1, {20, 1, 1}},
                                           TensorShape{2, {33, 5, 3}}, TensorShape{9, {264, 3, 3}},
                                           TensorShape{2, {8, 130, 127}},
                                           TensorShape{2, {1000, 1, 1}}));

class Widening : public KernelRunner, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(Widening, GivesEachBfloat16AsAFloat) {
  std::vector<Bfloat16> from(GetParam());
  std::vector<float> expected(GetParam());
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<float>(i) - 7.5F;
    expected[i] = from[i];
  }
  DeviceBlock wide{um::Bytes{from.size() * sizeof(float)}};
  Block source = numbers(from);
  widen(machine(), from.size(), source.device.data(), reinterpret_cast<float*>(wide.data()));
  EXPECT_EQ(wide.numbers<float>(), expected);
}

// Fewer groups of 8 than a block has threads, equally many, and one more.
INSTANTIATE_TEST_SUITE_P(Counts, Widening, ::testing::Values(8, 2048, 2056));

}  // namespace
}  // namespace spillway::cuda
