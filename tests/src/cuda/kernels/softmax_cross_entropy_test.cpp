#include <tuple>

#include "tests/src/cuda/device_runner.h"

namespace spillway::cuda {
namespace {

using Labels = std::vector<std::int32_t>;

class CudaSoftmaxCrossEntropy
    : public DeviceRunner,
      public ::testing::WithParamInterface<std::tuple<Precision, std::size_t>> {
 protected:
  CudaSoftmaxCrossEntropy() : DeviceRunner{std::get<0>(GetParam())} {}

  // Numbers up to 8, as large as losses then get.
  [[nodiscard]] Values some_logits(const TensorShape& shape) const {
    Values logits = host::random_values(shape.elements(), 1);
    for (double& value : logits) value *= 8;
    return rounded(logits);
  }
  [[nodiscard]] Operand result() const { return bytes(float_bytes(2)); }
  void expect_result(Operand& result, double tolerance) {
    const std::vector<float> numbers = result.device.numbers<float>();
    EXPECT_NEAR(static_cast<double>(numbers[0]), static_cast<double>(result.host.floats()[0]),
                tolerance);
    EXPECT_EQ(numbers[1], result.host.floats()[1]);
  }

  // Losses and gradients on both sides are right to a few float roundings of numbers up to 16, of
  // which the logarithm takes most away.
  static constexpr double kTolerance = 4e-6;
  const std::size_t classes_ = std::get<1>(GetParam());
  const TensorShape shape_{3, {.channels = classes_}};
};

TEST_P(CudaSoftmaxCrossEntropy, TrainIsTheHosts) {
  for (const Labels& labels : {Labels{1, 0, 1}, Labels{1, -1, 0}, Labels{-1, -1, -1}}) {
    Operand logits = tensor(shape_, some_logits(shape_));
    Operand label = numbers(labels);
    Operand loss = result();
    Operand dlogits = tensor(shape_);
    const SoftmaxCrossEntropyTrain op{.x = shape_};
    run(op, {&logits, &label, &loss, &dlogits});
    expect_result(loss, kTolerance);
    expect_close(shape_, dlogits, kTolerance);

    Operand same_loss = result();
    run_on_device(op, {&logits, &label, &same_loss, &logits});
    EXPECT_EQ(logits.device.bytes(), dlogits.device.bytes()) << "the same over the logits";
    EXPECT_EQ(same_loss.device.bytes(), loss.device.bytes());
  }
}

TEST_P(CudaSoftmaxCrossEntropy, TrainWeighsItsLossAndAddsItToAnother) {
  Operand logits = tensor(shape_, some_logits(shape_));
  Operand label = numbers(Labels{1, -1, 0});
  Operand loss = numbers(std::vector<float>{2.5F, 77});
  Operand dlogits = tensor(shape_);
  run(SoftmaxCrossEntropyTrain{.x = shape_, .weight = 0.3F, .accumulates = true},
      {&logits, &label, &loss, &loss, &dlogits});
  expect_result(loss, kTolerance);
  expect_close(shape_, dlogits, kTolerance);
}

TEST_P(CudaSoftmaxCrossEntropy, EvaluateIsTheHosts) {
  for (const Labels& labels : {Labels{1, 0, 1}, Labels{1, -1, 0}}) {
    Operand logits = tensor(shape_, some_logits(shape_));
    Operand label = numbers(labels);
    Operand loss = result();
    run(SoftmaxCrossEntropyEvaluate{.x = shape_}, {&logits, &label, &loss});
    expect_result(loss, 3 * kTolerance);
  }
}

// More samples than threads sum them: each loss is right to kTolerance.
TEST_P(CudaSoftmaxCrossEntropy, SumsManySamples) {
  const TensorShape shape{700, {.channels = classes_}};
  Labels labels;
  for (std::size_t n = 0; n < shape.batch; ++n) {
    labels.push_back(n % 7 == 3 ? -1 : static_cast<std::int32_t>(n % classes_));
  }
  Operand logits = tensor(shape, some_logits(shape));
  Operand label = numbers(labels);
  Operand loss = result();
  Operand dlogits = tensor(shape);
  run(SoftmaxCrossEntropyTrain{.x = shape}, {&logits, &label, &loss, &dlogits});
  expect_result(loss, kTolerance);
  expect_close(shape, dlogits, kTolerance);
}

// The first of equal logits is the prediction, wherever in a warp it is.
TEST_P(CudaSoftmaxCrossEntropy, PredictsTheFirstOfEqualLogits) {
  Values logits(shape_.elements(), -1.0);  // below the zeros of the padding
  logits[1] = 0;                           // row 0 predicts class 1
  logits[classes_] = 0;                    // row 1 predicts class 0
  logits[2 * classes_ - 1] = 0;            // the last class of row 1 as well
  Operand operand = tensor(shape_, logits);
  Operand label = numbers(Labels{1, 0, 1});  // row 2 predicts class 0
  Operand loss = result();
  run(SoftmaxCrossEntropyEvaluate{.x = shape_}, {&operand, &label, &loss});
  EXPECT_EQ(loss.device.numbers<float>()[1], 2.F);
  expect_result(loss, 3 * kTolerance);
}

// exp(1000) is infinite, and so is the logarithm of its sum; the loss of the other class is 2000.
TEST_P(CudaSoftmaxCrossEntropy, StaysFiniteForHugeLogits) {
  Values logits(shape_.elements(), -1000.0);
  for (std::size_t n = 0; n < 3; ++n) logits[n * classes_] = 1000;
  Operand operand = tensor(shape_, rounded(logits));
  Operand label = numbers(Labels{0, 1, 0});
  Operand loss = result();
  run_on_device(SoftmaxCrossEntropyEvaluate{.x = shape_}, {&operand, &label, &loss});
  EXPECT_EQ(loss.device.numbers<float>()[0], 2000.F);  // 1000 is a bfloat16
}

TEST_P(CudaSoftmaxCrossEntropy, MakesTheLossOfALabelThatIsNoClassNotANumber) {
  Operand operand = tensor(shape_, some_logits(shape_));
  Operand label = numbers(Labels{0, static_cast<std::int32_t>(classes_), 0});
  Operand loss = result();
  Operand dlogits = tensor(shape_);
  run_on_device(SoftmaxCrossEntropyTrain{.x = shape_}, {&operand, &label, &loss, &dlogits});
  EXPECT_TRUE(std::isnan(loss.device.numbers<float>()[0]));
  (void)values(shape_, dlogits);  // whose padding is zero
}

// A label for each pixel, some of them none.
TEST_P(CudaSoftmaxCrossEntropy, TakesALabelForEachPixel) {
  const TensorShape shape{2, {classes_, 7, 5}};
  Labels labels;
  for (std::size_t n = 0; n < shape.batch * 35; ++n) {
    labels.push_back(n % 4 == 2 ? -1 : static_cast<std::int32_t>(n * 7 % classes_));
  }
  Operand logits = tensor(shape, some_logits(shape));
  Operand label = numbers(labels);
  Operand loss = result();
  Operand dlogits = tensor(shape);
  run(SoftmaxCrossEntropyTrain{.x = shape}, {&logits, &label, &loss, &dlogits});
  expect_result(loss, kTolerance);
  expect_close(shape, dlogits, kTolerance);
  Operand sum = result();
  run(SoftmaxCrossEntropyEvaluate{.x = shape}, {&logits, &label, &sum});
  expect_result(sum, 53 * kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Classes, CudaSoftmaxCrossEntropy,
                         ::testing::Combine(kPrecisions, ::testing::Values(2, 10, 16, 33, 1000)));

}  // namespace
}  // namespace spillway::cuda
