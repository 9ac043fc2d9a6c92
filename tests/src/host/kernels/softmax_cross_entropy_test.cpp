#include "tests/src/host/kernel_runner.h"
#include "tests/src/host/naive_layers.h"
#include "tests/src/host/numeric_gradient.h"

namespace spillway::host {
namespace {

// A few float roundings of numbers up to 8.
constexpr double kTolerance = 2e-6;

class SoftmaxCrossEntropy : public KernelRunner, public testing::WithParamInterface<std::size_t> {
 protected:
  [[nodiscard]] static Block label_block(const std::vector<std::int32_t>& labels) {
    Block block{um::Bytes{labels.size() * sizeof(std::int32_t)}};
    std::memcpy(block.data(), labels.data(), labels.size() * sizeof(std::int32_t));
    return block;
  }
  static Block result_block() { return Block{float_bytes(2)}; }

  const std::size_t classes_ = GetParam();
  const TensorShape shape_{3, {.channels = classes_}};
  const Values logits_ = [this] {
    Values values = random_values(shape_.elements(), 1);
    for (double& value : values) value *= 8;
    return values;
  }();
};

TEST_P(SoftmaxCrossEntropy, TrainGivesTheMeanLossAndItsGradient) {
  const std::vector<std::int32_t> labels{1, 0, 1};
  Block logits = tensor(shape_, logits_);
  Block label = label_block(labels);
  Block result = result_block();
  Block dlogits = tensor(shape_);
  run(SoftmaxCrossEntropyTrain{.x = shape_}, {&logits, &label, &result, &dlogits});
  const auto mean_loss = [&](const Values& at) {
    return naive_cross_entropy(classes_, at, labels) / 3;
  };
  EXPECT_NEAR(static_cast<double>(result.floats()[0]), mean_loss(logits_), kTolerance);
  expect_near(values(shape_, dlogits), numeric_gradient(logits_, mean_loss), kTolerance);

  Block same_result = result_block();
  run(SoftmaxCrossEntropyTrain{.x = shape_}, {&logits, &label, &same_result, &logits});
  EXPECT_EQ(logits.bytes(), dlogits.bytes());
  EXPECT_EQ(result.bytes(), same_result.bytes());
}

// Two heads: the second adds its loss to what the first has left, and counts for itself.
TEST_P(SoftmaxCrossEntropy, TrainWeighsItsLossAndAddsItToAnother) {
  const std::vector<std::int32_t> labels{1, -1, 0};
  Block logits = tensor(shape_, logits_);
  Block label = label_block(labels);
  Block result = result_block();
  result.floats()[0] = 2.5F;
  result.floats()[1] = 77;
  Block dlogits = tensor(shape_);
  const SoftmaxCrossEntropyTrain op{.x = shape_, .weight = 0.3F, .accumulates = true};
  run(op, {&logits, &label, &result, &result, &dlogits});
  const auto loss = [&](const Values& at) {
    return 2.5 + static_cast<double>(0.3F) * naive_cross_entropy(classes_, at, labels) / 2;
  };
  EXPECT_NEAR(static_cast<double>(result.floats()[0]), loss(logits_), kTolerance);
  EXPECT_LE(result.floats()[1], 2);
  expect_near(values(shape_, dlogits), numeric_gradient(logits_, loss), kTolerance);
}

TEST_P(SoftmaxCrossEntropy, EvaluateSumsOverTheSamplesThatHaveALabel) {
  Block logits = tensor(shape_, logits_);
  Block label = label_block({1, -1, 0});
  Block result = result_block();
  run(SoftmaxCrossEntropyEvaluate{.x = shape_}, {&logits, &label, &result});
  EXPECT_NEAR(static_cast<double>(result.floats()[0]),
              naive_cross_entropy(classes_, logits_, {1, -1, 0}), 2 * kTolerance);
}

TEST_P(SoftmaxCrossEntropy, TrainIgnoresSamplesWithoutALabel) {
  Block logits = tensor(shape_, logits_);
  Block label = label_block({1, -1, 0});
  Block result = result_block();
  Block dlogits = tensor(shape_);
  run(SoftmaxCrossEntropyTrain{.x = shape_}, {&logits, &label, &result, &dlogits});
  const auto mean_loss = [&](const Values& at) {
    return naive_cross_entropy(classes_, at, {1, -1, 0}) / 2;
  };
  EXPECT_NEAR(static_cast<double>(result.floats()[0]), mean_loss(logits_), kTolerance);
  expect_near(values(shape_, dlogits), numeric_gradient(logits_, mean_loss), kTolerance);
}

// Three samples, one of them without a label, of a batch in which five have one.
TEST_P(SoftmaxCrossEntropy, TrainTakesTheMeanOverTheWholeBatchItIsAPartOf) {
  Block logits = tensor(shape_, logits_);
  Block label = label_block({1, -1, 0});
  Block result = result_block();
  Block dlogits = tensor(shape_);
  run(SoftmaxCrossEntropyTrain{.x = shape_}, {&logits, &label, &result, &dlogits},
      {.counted_labels = 5});
  const auto part_of_mean = [&](const Values& at) {
    return naive_cross_entropy(classes_, at, {1, -1, 0}) / 5;
  };
  EXPECT_NEAR(static_cast<double>(result.floats()[0]), part_of_mean(logits_), kTolerance);
  expect_near(values(shape_, dlogits), numeric_gradient(logits_, part_of_mean), kTolerance);
}

TEST_P(SoftmaxCrossEntropy, CountsPredictionsThatAreTheLargestLogit) {
  Values logits(shape_.elements(), -1.0);  // below the zeros of the padding
  logits[1] = 0;                           // row 0 predicts class 1
  logits[classes_] = 0;                    // row 1 predicts class 0
  logits[2 * classes_ + 1] = 0;            // row 2 predicts class 1, and has no label
  Block block = tensor(shape_, logits);
  for (const auto& [labels, correct] :
       {std::pair{std::vector<std::int32_t>{1, 0, -1}, 2.F}, {{0, 0, -1}, 1.F}, {{0, 1, 0}, 0.F}}) {
    Block label = label_block(labels);
    Block result = result_block();
    run(SoftmaxCrossEntropyEvaluate{.x = shape_}, {&block, &label, &result});
    EXPECT_EQ(result.floats()[1], correct);
  }
}

// exp(1000) is infinite, and so is the logarithm of its sum; the loss of the other class is 2000.
TEST_P(SoftmaxCrossEntropy, StaysFiniteForHugeLogits) {
  Values logits(shape_.elements(), -1000.0);
  for (std::size_t n = 0; n < 3; ++n) logits[n * classes_] = 1000;
  Block block = tensor(shape_, logits);
  Block label = label_block({0, 1, 0});
  Block result = result_block();
  run(SoftmaxCrossEntropyEvaluate{.x = shape_}, {&block, &label, &result});
  EXPECT_EQ(result.floats()[0], 2000.F);
}

INSTANTIATE_TEST_SUITE_P(Classes, SoftmaxCrossEntropy, testing::Values(2, 10, 16, 33));

// A label for each pixel: the same, on rows that lie apart.
class PixelCrossEntropy : public KernelRunner, public testing::WithParamInterface<TensorShape> {
 protected:
  // (N, C, H, W) as (N H W, C).
  [[nodiscard]] Values rows(const Values& x) const {
    const std::size_t pixels = shape_.image.height * shape_.image.width;
    Values result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t image = i / (pixels * classes_);
      result[(image * pixels + i % pixels) * classes_ + channel_of(shape_, i)] = x[i];
    }
    return result;
  }
  [[nodiscard]] double loss(const Values& at) const {
    return naive_cross_entropy(classes_, rows(at), labels_);
  }
  template <class Number>
  [[nodiscard]] static Block block_of(const std::vector<Number>& numbers) {
    Block block{um::Bytes{numbers.size() * sizeof(Number)}};
    std::memcpy(block.data(), numbers.data(), numbers.size() * sizeof(Number));
    return block;
  }

  const TensorShape shape_ = GetParam();
  const std::size_t classes_ = shape_.image.channels;
  const Values logits_ = random_values(shape_.elements(), 1);
  // Every fourth pixel has none.
  const std::vector<std::int32_t> labels_ = [this] {
    std::vector<std::int32_t> labels(shape_.elements() / classes_);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = i % 4 == 2 ? -1 : static_cast<std::int32_t>(i * 7 % classes_);
    }
    return labels;
  }();
  const double counted_ = static_cast<double>(
      std::count_if(labels_.begin(), labels_.end(), [](std::int32_t label) { return label >= 0; }));
};

TEST_P(PixelCrossEntropy, TrainGivesTheMeanOverTheLabelledPixelsAndItsGradient) {
  Block logits = tensor(shape_, logits_);
  Block labels = block_of(labels_);
  Block result{float_bytes(2)};
  Block dlogits = tensor(shape_);
  run(SoftmaxCrossEntropyTrain{.x = shape_}, {&logits, &labels, &result, &dlogits});
  const auto mean_loss = [&](const Values& at) { return loss(at) / counted_; };
  EXPECT_NEAR(static_cast<double>(result.floats()[0]), mean_loss(logits_), kTolerance);
  expect_near(values(shape_, dlogits), numeric_gradient(logits_, mean_loss), kTolerance);

  run(SoftmaxCrossEntropyTrain{.x = shape_}, {&logits, &labels, &result, &logits});
  EXPECT_EQ(logits.bytes(), dlogits.bytes()) << "the same over the logits";
}

TEST_P(PixelCrossEntropy, EvaluateSumsTheLossAndCountsPixels) {
  Block logits = tensor(shape_, logits_);
  Block labels = block_of(labels_);
  Block result{float_bytes(2)};
  run(SoftmaxCrossEntropyEvaluate{.x = shape_}, {&logits, &labels, &result});
  EXPECT_NEAR(static_cast<double>(result.floats()[0]), loss(logits_), counted_ * kTolerance);
  const Values all = rows(logits_);
  int correct = 0;
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    const auto row = all.begin() + static_cast<std::ptrdiff_t>(i * classes_);
    const auto end = row + static_cast<std::ptrdiff_t>(classes_);
    correct += std::max_element(row, end) - row == labels_[i] ? 1 : 0;
  }
  EXPECT_EQ(result.floats()[1], static_cast<float>(correct));
}

// One pixel more or less beside it changes no bit of a row.
TEST_P(PixelCrossEntropy, HasTheBitsOfASampleForEachPixel) {
  const TensorShape apart{labels_.size(), {.channels = classes_}};
  Block labels = block_of(labels_);
  Block together_logits = tensor(shape_, logits_);
  Block together_result{float_bytes(2)};
  Block apart_logits = tensor(apart, rows(logits_));
  Block apart_result{float_bytes(2)};
  run(SoftmaxCrossEntropyTrain{.x = shape_},
      {&together_logits, &labels, &together_result, &together_logits});
  run(SoftmaxCrossEntropyTrain{.x = apart}, {&apart_logits, &labels, &apart_result, &apart_logits});
  EXPECT_EQ(together_result.bytes(), apart_result.bytes());
  EXPECT_EQ(rows(values(shape_, together_logits)), values(apart, apart_logits));
}

INSTANTIATE_TEST_SUITE_P(Shapes, PixelCrossEntropy,
                         testing::Values(TensorShape{2, {21, 3, 5}}, TensorShape{1, {3, 4, 3}},
                                         TensorShape{3, {2, 1, 7}}, TensorShape{2, {16, 5, 1}}));

}  // namespace
}  // namespace spillway::host
