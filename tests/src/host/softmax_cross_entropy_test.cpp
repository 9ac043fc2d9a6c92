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
      {.labelled_samples = 5});
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

}  // namespace
}  // namespace spillway::host
