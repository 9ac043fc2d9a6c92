#include "tests/src/host/kernel_runner.h"

namespace spillway::host {
namespace {

class BatchLoading : public KernelRunner, public testing::WithParamInterface<TensorShape> {};

TEST_P(BatchLoading, PutsImagesIntoTheLayoutAndCopiesLabels) {
  const TensorShape shape = GetParam();
  const Values images = random_values(shape.elements(), 1);
  Batch batch{.images{images.begin(), images.end()}, .labels = {}};
  for (std::size_t n = 0; n < shape.batch; ++n) {
    batch.labels.push_back(static_cast<std::int32_t>(n) - 1);
  }
  Block x = tensor(shape);
  Block labels{um::Bytes{shape.batch * sizeof(std::int32_t)}};
  run(LoadBatch{.x = shape}, {&x, &labels}, {.batch = &batch});
  EXPECT_EQ(values(shape, x), images);
  EXPECT_EQ(std::memcmp(labels.data(), batch.labels.data(), labels.bytes().size()), 0);
}

// Of three more samples, from the third on.
TEST_P(BatchLoading, TakesItsPartOfALargerBatch) {
  const TensorShape shape = GetParam();
  const std::size_t elements = shape.image.elements();
  const Values images = random_values((shape.batch + 3) * elements, 1);
  Batch batch{.images{images.begin(), images.end()}, .labels = {}};
  for (std::size_t n = 0; n < shape.batch + 3; ++n) {
    batch.labels.push_back(static_cast<std::int32_t>(n));
  }
  Block x = tensor(shape);
  Block labels{um::Bytes{shape.batch * sizeof(std::int32_t)}};
  run(LoadBatch{.x = shape}, {&x, &labels}, {.batch = &batch, .first_sample = 2});
  const auto first = images.begin() + static_cast<std::ptrdiff_t>(2 * elements);
  EXPECT_EQ(values(shape, x), Values(first, first + static_cast<std::ptrdiff_t>(shape.elements())));
  EXPECT_EQ(std::memcmp(labels.data(), &batch.labels[2], labels.bytes().size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchLoading,
                         testing::Values(TensorShape{3, {3, 4, 5}}, TensorShape{2, {1, 6, 6}},
                                         TensorShape{3, {10, 3, 2}}, TensorShape{1, {20, 1, 1}}));

using WrongBatch = KernelRunner;

TEST_F(WrongBatch, IsTheCallersBug) {
  const TensorShape shape{2, {1, 3, 3}};
  const Batch batch{.images = std::pmr::vector<float>(9), .labels = {0}};
  Block x = tensor(shape);
  Block labels{um::Bytes{8}};
  EXPECT_THROW(run(LoadBatch{.x = shape}, {&x, &labels}, {.batch = &batch}), um::ContractError);
  const Batch enough{.images = std::pmr::vector<float>(18), .labels = {0, 1}};
  EXPECT_THROW(run(LoadBatch{.x = shape}, {&x, &labels}, {.batch = &enough, .first_sample = 1}),
               um::ContractError);
}

class PixelLabels : public KernelRunner {};

TEST_F(PixelLabels, AreCopiedOneForEachPixel) {
  const TensorShape shape{2, {1, 2, 3}};
  Batch batch{.images = std::pmr::vector<float>(12, 0.5F), .labels = {}};
  for (std::int32_t i = 0; i < 12; ++i) batch.labels.push_back(i - 1);
  Block x = tensor(shape);
  Block labels{um::Bytes{12 * sizeof(std::int32_t)}};
  run(LoadBatch{.x = shape, .labels_each = 6}, {&x, &labels}, {.batch = &batch});
  EXPECT_EQ(std::memcmp(labels.data(), batch.labels.data(), 12 * sizeof(std::int32_t)), 0);
}

}  // namespace
}  // namespace spillway::host
