#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

class BatchLoading : public KernelRunner, public ::testing::WithParamInterface<TensorShape> {
 protected:
  // Of `more` samples than the step has.
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
    run(LoadBatch{.x = shape_}, {&x, &labels}, {.batch = &batch, .first_sample = first});
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

// Of three more samples, from the third on.
TEST_P(BatchLoading, TakesItsPartOfALargerBatch) { expect_loaded(batch(3), 2); }

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
  EXPECT_THROW(run_tested(op, {&x, &labels}, {.batch = &enough, .first_sample = 1}),
               um::ContractError);
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

}  // namespace
}  // namespace spillway::test
