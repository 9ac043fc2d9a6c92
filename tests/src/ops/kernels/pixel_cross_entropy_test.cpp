#include "tests/src/ops/kernels/cross_entropy_runner.h"

namespace spillway::test {
namespace {

// A label for each pixel, every fourth of which has none: the same, on rows that lie apart.
class PixelCrossEntropy : public CrossEntropyRunner,
                          public ::testing::WithParamInterface<TensorShape> {
 protected:
  const TensorShape shape_ = GetParam();
  const std::size_t classes_ = shape_.image.channels;
  const Labels labels_ = [this] {
    Labels labels(shape_.elements() / classes_);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = i % 4 == 2 ? -1 : static_cast<std::int32_t>(i * 7 % classes_);
    }
    return labels;
  }();
};

TEST_P(PixelCrossEntropy, TrainGivesTheMeanOverTheLabelledPixelsAndItsGradient) {
  expect_training(shape_, labels_, counted(labels_));
}

TEST_P(PixelCrossEntropy, EvaluateSumsTheLossAndCountsPixels) {
  expect_evaluation(shape_, labels_);
}

// One pixel more or less beside it changes no bit of a row.
TEST_P(PixelCrossEntropy, HasTheBitsOfASampleForEachPixel) {
  const TensorShape apart{labels_.size(), {.channels = classes_}};
  const Values together = some_logits(shape_);
  Block labels = numbers(labels_);
  Block together_logits = tensor(shape_, together);
  Block together_result = empty_result();
  Block apart_logits = tensor(apart, rows(shape_, together));
  Block apart_result = empty_result();
  run(SoftmaxCrossEntropyTrain{.x = shape_},
      {&together_logits, &labels, &together_result, &together_logits});
  run(SoftmaxCrossEntropyTrain{.x = apart}, {&apart_logits, &labels, &apart_result, &apart_logits});
  EXPECT_EQ(together_result.bytes(), apart_result.bytes());
  EXPECT_EQ(rows(shape_, values(shape_, together_logits)), values(apart, apart_logits));
}

INSTANTIATE_TEST_SUITE_P(Shapes, PixelCrossEntropy,
                         ::testing::Values(TensorShape{2, {21, 3, 5}}, TensorShape{1, {3, 4, 3}},
                                           TensorShape{3, {2, 1, 7}}, TensorShape{2, {16, 5, 1}},
                                           TensorShape{2, {33, 7, 5}},
                                           TensorShape{2, {1000, 7, 5}}));

}  // namespace
}  // namespace spillway::test
