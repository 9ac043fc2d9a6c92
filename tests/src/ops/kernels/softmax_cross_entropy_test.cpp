#include <cmath>
#include <utility>

#include "tests/src/ops/kernels/cross_entropy_runner.h"

namespace spillway::test {
namespace {

class SoftmaxCrossEntropy : public CrossEntropyRunner,
                            public ::testing::WithParamInterface<std::size_t> {
 protected:
  const std::size_t classes_ = GetParam();
  const TensorShape shape_{3, {.channels = classes_}};
};

TEST_P(SoftmaxCrossEntropy, TrainGivesTheMeanLossOfLabelledSamplesAndItsGradient) {
  for (const Labels& labels : {Labels{1, 0, 1}, Labels{1, -1, 0}, Labels{-1, -1, -1}}) {
    expect_training(shape_, labels, counted(labels));
  }
}

TEST_P(SoftmaxCrossEntropy, TrainMixesTheLabelWithAllClasses) {
  for (const Labels& labels : {Labels{1, 0, 1}, Labels{1, -1, 0}}) expect_smoothed(shape_, labels);
}

// Three samples, one of them without a label, of a batch in which five have one.
TEST_P(SoftmaxCrossEntropy, TrainTakesTheMeanOverTheWholeBatchItIsAPartOf) {
  expect_training(shape_, {1, -1, 0}, 5, {.counted_labels = 5});
}

// Two heads: the second adds its loss to what the first has left, and counts for itself.
TEST_P(SoftmaxCrossEntropy, TrainWeighsItsLossAndAddsItToAnother) {
  const Labels labels{1, -1, 0};
  const Values values_of_logits = some_logits(shape_);
  Block logits = tensor(shape_, values_of_logits);
  Block label = numbers(labels);
  Block result = numbers(std::vector<float>{2.5F, 77});
  Block dlogits = tensor(shape_);
  const SoftmaxCrossEntropyTrain op{.x = shape_, .weight = 0.3F, .accumulates = true};
  run(op, {&logits, &label, &result, &result, &dlogits});
  const auto both = [&](const Values& at) {
    return 2.5 + static_cast<double>(0.3F) * loss(shape_, at, labels) / 2;
  };
  expect_result(result, both(values_of_logits), correct(shape_, values_of_logits, labels),
                kLossTolerance);
  if (are_few(values_of_logits)) {
    expect_near(values(shape_, dlogits), numeric_gradient(values_of_logits, both), kTolerance);
  }
  expect_same_on_host(shape_, dlogits, 2 * kTolerance);
}

TEST_P(SoftmaxCrossEntropy, EvaluateSumsOverTheSamplesThatHaveALabel) {
  for (const Labels& labels : {Labels{1, 0, 1}, Labels{1, -1, 0}}) {
    expect_evaluation(shape_, labels);
  }
}

// More than threads of a block.
TEST_P(SoftmaxCrossEntropy, SumsManySamples) {
  const TensorShape shape{700, {.channels = classes_}};
  Labels labels;
  for (std::size_t n = 0; n < shape.batch; ++n) {
    labels.push_back(n % 7 == 3 ? -1 : static_cast<std::int32_t>(n % classes_));
  }
  expect_training(shape, labels, counted(labels));
}

TEST_P(SoftmaxCrossEntropy, CountsPredictionsThatAreTheFirstOfTheLargestLogits) {
  Values logits(shape_.elements(), -1.0);  // below the zeros of the padding
  logits[1] = 0;                           // row 0 predicts class 1
  logits[classes_] = 0;                    // row 1 predicts class 0
  logits[2 * classes_ - 1] = 0;            // the last class of row 1 as well
  logits[2 * classes_ + 1] = 0;            // row 2 predicts class 1
  Block block = tensor(shape_, logits);
  for (const auto& [labels, correct] :
       {std::pair{Labels{1, 0, -1}, 2.F}, {{0, 0, -1}, 1.F}, {{0, 1, 0}, 0.F}, {{1, 0, 1}, 3.F}}) {
    Block label = numbers(labels);
    Block result = evaluated_result(shape_);
    run(SoftmaxCrossEntropyEvaluate{.x = shape_}, {&block, &label, &result});
    EXPECT_EQ(result.numbers<float>()[1], correct);
  }
}

// exp(1000) is infinite, and so is the logarithm of its sum; the loss of the other class is 2000.
TEST_P(SoftmaxCrossEntropy, StaysFiniteForHugeLogits) {
  Values logits(shape_.elements(), -1000.0);
  for (std::size_t n = 0; n < 3; ++n) logits[n * classes_] = 1000;  // which is a bfloat16
  Block block = tensor(shape_, logits);
  Block label = numbers(Labels{0, 1, 0});
  Block result = evaluated_result(shape_);
  run(SoftmaxCrossEntropyEvaluate{.x = shape_}, {&block, &label, &result});
  EXPECT_EQ(result.numbers<float>()[0], 2000.F);
}

// The host sees it; a device, which nobody waits for, makes the loss not a number.
TEST_P(SoftmaxCrossEntropy, RefusesALabelThatIsNoClass) {
  Block logits = tensor(shape_, some_logits(shape_));
  Block label = numbers(Labels{0, static_cast<std::int32_t>(classes_), 0});
  Block result = empty_result();
  Block dlogits = tensor(shape_);
  const auto train = [&] {
    run_tested(SoftmaxCrossEntropyTrain{.x = shape_}, {&logits, &label, &result, &dlogits});
  };
  if (!kIsCuda) {
    EXPECT_THROW(train(), um::ContractError);
    return;
  }
  train();
  EXPECT_TRUE(std::isnan(result.numbers<float>()[0]));
  (void)values(shape_, dlogits);  // whose padding is zero
}

INSTANTIATE_TEST_SUITE_P(Classes, SoftmaxCrossEntropy, ::testing::Values(2, 10, 16, 33, 1000));

}  // namespace
}  // namespace spillway::test
