#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "src/ops/narrow_floats.h"
#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

class BatchLoading : public KernelRunner, public ::testing::WithParamInterface<TensorShape> {
 protected:
  // Returns a batch with `more` samples than the step loads.
  [[nodiscard]] Batch batch(std::size_t more) const {
    const Values images = host::random_values((shape_.batch + more) * shape_.image.elements(), 1);
    Batch batch{.images{images.begin(), images.end()}, .labels = {}};
    for (std::size_t n = 0; n < shape_.batch + more; ++n) {
      batch.labels.push_back(static_cast<std::int32_t>(n) - 1);
    }
    return batch;
  }
  void expect_loaded(const Batch& batch, std::size_t first) {
    Block x = tensor(shape_);
    Block labels = bytes(um::Bytes{shape_.batch * sizeof(std::int32_t)});
    run(LoadBatch{.x = shape_, .first_sample = first}, {&x, &labels}, {.batch = &batch});
    const auto image =
        batch.images.begin() + static_cast<std::ptrdiff_t>(first * shape_.image.elements());
    expect_near(values(shape_, x),
                Values(image, image + static_cast<std::ptrdiff_t>(shape_.elements())), 0);
    const auto label = batch.labels.begin() + static_cast<std::ptrdiff_t>(first);
    EXPECT_EQ(labels.numbers<std::int32_t>(),
              std::vector<std::int32_t>(label, label + static_cast<std::ptrdiff_t>(shape_.batch)));
  }

  const TensorShape shape_ = GetParam();
};

TEST_P(BatchLoading, PutsImagesIntoTheLayoutAndCopiesLabels) { expect_loaded(batch(0), 0); }

// The batch has three further samples; loading starts at the third one.
TEST_P(BatchLoading, TakesItsPartOfALargerBatch) { expect_loaded(batch(3), 2); }

// Covers a part of a larger batch, too. The first image has no label.
TEST_P(BatchLoading, MakesOfBytesTheNumbersThatTheyStandFor) {
  std::vector<float> numbers(shape_.image.channels * kByteValues);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] =
        (static_cast<float>(i % kByteValues) / 255.0F - 0.4F) / (0.2F + static_cast<float>(i));
  }
  for (const std::size_t first : {0U, 1U}) {
    Batch of_floats = batch(1);
    Batch of_bytes{.bytes = std::pmr::vector<std::uint8_t>(of_floats.images.size()),
                   .byte_numbers = numbers,
                   .labels = of_floats.labels};
    for (std::size_t i = 0; i < of_bytes.bytes.size(); ++i) {
      of_bytes.bytes[i] = static_cast<std::uint8_t>(i * 37);
    }
    for (std::size_t n = 0; n < of_floats.labels.size(); ++n) {
      const std::size_t each = shape_.image.elements();
      const std::span<float> image{&of_floats.images[n * each], each};
      look_up({&of_bytes.bytes[n * each], each}, numbers, image);
      if (of_floats.labels[n] < 0) std::ranges::fill(image, 0.F);
    }
    Block x = tensor(shape_);
    Block x_of_bytes = tensor(shape_);
    Block labels = bytes(um::Bytes{shape_.batch * sizeof(std::int32_t)});
    Block labels_of_bytes = bytes(um::Bytes{shape_.batch * sizeof(std::int32_t)});
    run(LoadBatch{.x = shape_, .first_sample = first}, {&x, &labels}, {.batch = &of_floats});
    run(LoadBatch{.x = shape_, .has_bytes = true, .first_sample = first},
        {&x_of_bytes, &labels_of_bytes}, {.batch = &of_bytes});
    EXPECT_EQ(values(shape_, x_of_bytes), values(shape_, x));
    EXPECT_EQ(labels_of_bytes.numbers<std::int32_t>(), labels.numbers<std::int32_t>());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchLoading,
                         ::testing::Values(TensorShape{3, {3, 4, 5}}, TensorShape{2, {1, 7, 7}},
                                           TensorShape{2, {1, 6, 6}}, TensorShape{3, {10, 3, 2}},
                                           TensorShape{1, {20, 1, 1}}));

class WrongBatch : public KernelRunner {};

TEST_F(WrongBatch, IsTheCallersBug) {
  const TensorShape shape{2, {1, 3, 3}};
  const Batch batch{.images = std::pmr::vector<float>(9), .labels = {0}};
  Block x = tensor(shape);
  Block labels = bytes(um::Bytes{8});
  const LoadBatch op{.x = shape};
  EXPECT_THROW(run_tested(op, {&x, &labels}, {.batch = &batch}), um::ContractError);
  const Batch enough{.images = std::pmr::vector<float>(18), .labels = {0, 1}};
  LoadBatch beyond = op;
  beyond.first_sample = 1;
  EXPECT_THROW(run_tested(beyond, {&x, &labels}, {.batch = &enough}), um::ContractError);
  const LoadBatch of_bytes{.x = shape, .has_bytes = true};
  EXPECT_THROW(run_tested(of_bytes, {&x, &labels}, {.batch = &enough}), um::ContractError);
  const Batch no_numbers{.bytes = std::pmr::vector<std::uint8_t>(18), .labels = {0, 1}};
  EXPECT_THROW(run_tested(of_bytes, {&x, &labels}, {.batch = &no_numbers}), um::ContractError);
}

class PixelLabels : public KernelRunner {};

TEST_F(PixelLabels, AreCopiedOneForEachPixel) {
  const TensorShape shape{2, {1, 2, 3}};
  Batch batch{.images = std::pmr::vector<float>(12, 0.5F), .labels = {}};
  for (std::int32_t i = 0; i < 12; ++i) batch.labels.push_back(i - 1);
  Block x = tensor(shape);
  Block labels = bytes(um::Bytes{12 * sizeof(std::int32_t)});
  run(LoadBatch{.x = shape, .labels_each = 6}, {&x, &labels}, {.batch = &batch});
  EXPECT_EQ(labels.numbers<std::int32_t>(),
            std::vector<std::int32_t>(batch.labels.begin(), batch.labels.end()));
}

struct CropCase {
  TensorShape x;
  nets::Extent window;
  nets::Extent offset;
};

// Name that gtest looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const CropCase& c, std::ostream* out) {
  PrintTo(c.x, out);
  *out << " to " << c.window.height << 'x' << c.window.width << " at " << c.offset.height << 'x'
       << c.offset.width;
}

class Crop : public KernelRunner, public ::testing::WithParamInterface<CropCase> {
 protected:
  // Calls visit(offset in y, offset in x).
  template <class Visit>
  void for_each_pixel(const Visit& visit) const {
    for (std::size_t n = 0; n < y_.batch; ++n) {
      for (std::size_t c = 0; c < y_.image.channels; ++c) {
        for (std::size_t h = 0; h < y_.image.height; ++h) {
          for (std::size_t w = 0; w < y_.image.width; ++w) {
            visit(place(y_, n, c, h, w), place(x_, n, c, h + offset_.height, w + offset_.width));
          }
        }
      }
    }
  }

  const TensorShape x_ = GetParam().x;
  const nets::Extent offset_ = GetParam().offset;
  const TensorShape y_{x_.batch,
                       {x_.image.channels, GetParam().window.height, GetParam().window.width}};
};

TEST_P(Crop, ForwardCopiesTheWindow) {
  const Values values_of_x = random_values(x_.elements(), 1);
  Block x = tensor(x_, values_of_x);
  Block y = tensor(y_);
  run(CropForward{.x = x_, .y = y_, .offset = offset_}, {&x, &y});
  Values expected(y_.elements());
  for_each_pixel([&](std::size_t to, std::size_t from) { expected[to] = values_of_x[from]; });
  expect_near(values(y_, y), expected, 0);
}

TEST_P(Crop, BackwardPutsItBackAmongZeros) {
  const Values values_of_dy = random_values(y_.elements(), 2);
  Block dy = tensor(y_, values_of_dy);
  Block dx = tensor(x_);
  run(CropBackward{.x = x_, .y = y_, .offset = offset_}, {&dy, &dx});
  Values expected(x_.elements(), 0.0);
  for_each_pixel([&](std::size_t from, std::size_t to) { expected[to] = values_of_dy[from]; });
  expect_near(values(x_, dx), expected, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Windows, Crop,
    ::testing::Values(CropCase{{3, {21, 7, 9}}, {4, 5}, {2, 3}},
                      CropCase{{2, {3, 6, 5}}, {6, 1}, {0, 4}},  // dense; the last column
                      CropCase{{1, {2, 5, 5}}, {3, 3}, {1, 1}},
                      CropCase{{2, {16, 4, 3}}, {4, 3}, {0, 0}}));  // the whole image

}  // namespace
}  // namespace spillway::test
