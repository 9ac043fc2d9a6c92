// Tests the loss, also on images that mix two images.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {
namespace {

// Runs the losses and compares them with sums in double.
class CrossEntropyRunner : public KernelRunner {
 protected:
  using Labels = std::vector<std::int32_t>;

  // A few float roundings of numbers up to 16; the logarithm removes most of the error.
  static constexpr double kTolerance = 2e-6;
  static constexpr double kLossTolerance = (kIsCuda ? 2 : 1) * kTolerance;

  // Returns the number of labels that are not negative, but at least one.
  [[nodiscard]] static double counted(const Labels& labels) {
    const auto is_label = [](std::int32_t label) { return label >= 0; };
    return std::max(1.0,
                    static_cast<double>(std::count_if(labels.begin(), labels.end(), is_label)));
  }
  // Returns numbers up to 8; losses are then as large.
  [[nodiscard]] static Values some_logits(const TensorShape& shape) {
    Values logits = random_values(shape.elements(), 1);
    for (double& value : logits) value *= 8;
    return rounded(logits);
  }
  // Converts (N, C, H, W) to (N H W, C).
  [[nodiscard]] static Values rows(const TensorShape& shape, const Values& x) {
    const std::size_t pixels = shape.image.height * shape.image.width;
    const std::size_t classes = shape.image.channels;
    Values result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t image = i / (pixels * classes);
      result[(image * pixels + i % pixels) * classes + channel_of(shape, i)] = x[i];
    }
    return result;
  }
  [[nodiscard]] static double loss(const TensorShape& shape, const Values& logits,
                                   const Labels& labels) {
    return naive_cross_entropy(shape.image.channels, rows(shape, logits), labels);
  }
  [[nodiscard]] static Block empty_result() { return bytes(float_bytes(2)); }
  [[nodiscard]] static Block evaluated_result(const TensorShape& shape) {
    return bytes(float_bytes(2 + SoftmaxCrossEntropyEvaluate{.x = shape}.judged_floats()));
  }
  // Returns the number of rows with their label as the first largest logit.
  [[nodiscard]] static float correct(const TensorShape& shape, const Values& logits,
                                     const Labels& labels) {
    const Values all = rows(shape, logits);
    const auto classes = static_cast<std::ptrdiff_t>(shape.image.channels);
    float count = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto row = all.begin() + static_cast<std::ptrdiff_t>(i) * classes;
      count += std::max_element(row, row + classes) - row == labels[i] ? 1.F : 0.F;
    }
    return count;
  }

  static void expect_result(Block& result, double loss, float correct, double tolerance) {
    const std::vector<float> numbers = result.numbers<float>();
    EXPECT_NEAR(static_cast<double>(numbers[0]), loss, tolerance);
    EXPECT_EQ(numbers[1], correct);
  }
  // Expects the mean loss over `count` labels, and its gradient, also when written over the logits.
  // A part of a batch has a larger `count` than labels.
  void expect_training(const TensorShape& shape, const Labels& labels, double count,
                       const StepContext& context = {}) {
    const Values values_of_logits = some_logits(shape);
    Block logits = tensor(shape, values_of_logits);
    Block label = numbers(labels);
    Block result = empty_result();
    Block dlogits = tensor(shape);
    const SoftmaxCrossEntropyTrain op{.x = shape};
    run(op, {&logits, &label, &result, &dlogits}, context);
    const auto mean = [&](const Values& at) { return loss(shape, at, labels) / count; };
    expect_result(result, mean(values_of_logits), correct(shape, values_of_logits, labels),
                  kLossTolerance);
    if (are_few(values_of_logits)) {
      expect_near(values(shape, dlogits), numeric_gradient(values_of_logits, mean), kTolerance);
    }
    expect_same_on_host(shape, dlogits, 2 * kTolerance);

    Block same_result = empty_result();
    run(op, {&logits, &label, &same_result, &logits}, context);
    EXPECT_EQ(logits.bytes(), dlogits.bytes());
    EXPECT_EQ(result.bytes(), same_result.bytes());
  }
  void expect_evaluation(const TensorShape& shape, const Labels& labels) {
    const Values values_of_logits = some_logits(shape);
    Block logits = tensor(shape, values_of_logits);
    Block label = numbers(labels);
    Block result = evaluated_result(shape);
    run(SoftmaxCrossEntropyEvaluate{.x = shape}, {&logits, &label, &result});
    expect_result(result, loss(shape, values_of_logits, labels),
                  correct(shape, values_of_logits, labels), counted(labels) * kLossTolerance);
    if (labels.size() != shape.batch) return;
    expect_judged(shape, rows(shape, values_of_logits), labels, result);
    expect_logits(shape, values_of_logits, labels, result);
  }
  // Expects the given logits, unchanged, after all results of `without`.
  void expect_logits(const TensorShape& shape, const Values& values_of_logits, const Labels& labels,
                     Block& without) {
    const SoftmaxCrossEntropyEvaluate op{.x = shape, .gives_logits = true};
    Block logits = tensor(shape, values_of_logits);
    Block label = numbers(labels);
    Block result = bytes(float_bytes(2 + op.judged_floats() + op.given_logits()));
    run(op, {&logits, &label, &result});
    const std::vector<float> found = result.numbers<float>();
    const std::vector<float> before = without.numbers<float>();
    ASSERT_EQ(found.size(), before.size() + values_of_logits.size());
    EXPECT_TRUE(std::equal(before.begin(), before.end(), found.begin()));
    const Values wanted = rows(shape, values_of_logits);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(static_cast<double>(found[before.size() + i]), wanted[i]);
    }
  }
  // Expects the first largest logit, its softmax, and the number of logits before the label's.
  static void expect_judged(const TensorShape& shape, const Values& logits, const Labels& labels,
                            Block& result) {
    const std::vector<float> numbers = result.numbers<float>();
    const auto classes = static_cast<std::ptrdiff_t>(shape.image.channels);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i) * classes;
      const auto largest = std::max_element(row, row + classes);
      std::ptrdiff_t rank = labels[i] < 0 ? classes : 0;
      double sum = 0;
      for (std::ptrdiff_t c = 0; c < classes; ++c) {
        sum += std::exp(row[c] - *largest);
        const double own = labels[i] < 0 ? 1e9 : row[labels[i]];
        rank += row[c] > own || (row[c] == own && c < labels[i]) ? 1 : 0;
      }
      EXPECT_EQ(numbers[2 + 3 * i], static_cast<float>(largest - row));
      EXPECT_NEAR(static_cast<double>(numbers[3 + 3 * i]), 1 / sum, kTolerance);
      EXPECT_EQ(numbers[4 + 3 * i], static_cast<float>(rank));
    }
  }
  // Expects 0.75 times the label's loss plus 0.25 times the mean loss over all classes.
  void expect_smoothed(const TensorShape& shape, const Labels& labels) {
    const Values values_of_logits = some_logits(shape);
    Block logits = tensor(shape, values_of_logits);
    Block label = numbers(labels);
    Block result = empty_result();
    Block dlogits = tensor(shape);
    run(SoftmaxCrossEntropyTrain{.x = shape, .smoothing = 0.25F},
        {&logits, &label, &result, &dlogits});
    const auto mean = [&](const Values& at) {
      double sum = 0.75 * loss(shape, at, labels);
      const auto classes = static_cast<std::int32_t>(shape.image.channels);
      for (std::int32_t c = 0; c < classes; ++c) {
        Labels other = labels;
        for (std::int32_t& each : other) each = each < 0 ? each : c;
        sum += 0.25 / classes * loss(shape, at, other);
      }
      return sum / counted(labels);
    };
    expect_result(result, mean(values_of_logits), correct(shape, values_of_logits, labels),
                  kLossTolerance);
    if (are_few(values_of_logits)) {
      expect_near(values(shape, dlogits), numeric_gradient(values_of_logits, mean), kTolerance);
    }
    expect_same_on_host(shape, dlogits, 2 * kTolerance);
  }
};

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

// Three samples, one without a label, are part of a batch with five labels.
TEST_P(SoftmaxCrossEntropy, TrainTakesTheMeanOverTheWholeBatchItIsAPartOf) {
  expect_training(shape_, {1, -1, 0}, 5, {.counted_labels = 5});
}

// Two losses: the second adds itself to the first one's, with its own weight.
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

// More samples than threads per block.
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

// exp(1000) and the logarithm of its sum would be infinite; the loss of the other class is 2000.
TEST_P(SoftmaxCrossEntropy, StaysFiniteForHugeLogits) {
  Values logits(shape_.elements(), -1000.0);
  for (std::size_t n = 0; n < 3; ++n) logits[n * classes_] = 1000;  // 1000 is exact in bfloat16
  Block block = tensor(shape_, logits);
  Block label = numbers(Labels{0, 1, 0});
  Block result = evaluated_result(shape_);
  run(SoftmaxCrossEntropyEvaluate{.x = shape_}, {&block, &label, &result});
  EXPECT_EQ(result.numbers<float>()[0], 2000.F);
}

// The host throws; a device cannot, so the loss becomes a NaN.
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
  (void)values(shape_, dlogits);  // requires zero padding
}

INSTANTIATE_TEST_SUITE_P(Classes, SoftmaxCrossEntropy, ::testing::Values(2, 10, 16, 33, 1000));

// One label per pixel, a quarter of them negative: the same tests on rows that are not adjacent.
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

// Neighbouring pixels change no bit of a row.
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

using Mixed = std::vector<MixedLabel>;

class MixedLabels : public CrossEntropyRunner, public ::testing::WithParamInterface<std::size_t> {
 protected:
  static std::vector<std::int32_t> numbers_of(const Mixed& labels) {
    std::vector<std::int32_t> all;
    for (const MixedLabel& label : labels) {
      all.insert(all.end(), {label.first, label.second, std::bit_cast<std::int32_t>(label.part)});
    }
    return all;
  }
  // Returns the loss of sample `n` for one class.
  [[nodiscard]] double loss_of(const Values& at, std::size_t n, std::int32_t label) const {
    Labels alone(shape_.batch, -1);
    alone[n] = label;
    return loss(shape_, at, alone);
  }
  [[nodiscard]] double mean_loss(const Values& at, const Mixed& labels, double smoothing) const {
    double sum = 0;
    double count = 0;
    for (std::size_t n = 0; n < labels.size(); ++n) {
      const auto& [first, second, part] = labels[n];
      if (first < 0) continue;
      const auto other = static_cast<double>(part);
      sum +=
          (1 - smoothing) * ((1 - other) * loss_of(at, n, first) + other * loss_of(at, n, second));
      for (std::size_t c = 0; smoothing > 0 && c < classes_; ++c) {
        sum += smoothing / static_cast<double>(classes_) *
               loss_of(at, n, static_cast<std::int32_t>(c));
      }
      ++count;
    }
    return sum / count;
  }
  void expect_trained(const Mixed& labels, float smoothing) {
    const Values values_of_logits = some_logits(shape_);
    Block logits = tensor(shape_, values_of_logits);
    Block label = numbers(numbers_of(labels));
    Block result = empty_result();
    Block dlogits = tensor(shape_);
    run(SoftmaxCrossEntropyTrain{.x = shape_, .smoothing = smoothing, .mixes = true},
        {&logits, &label, &result, &dlogits});
    const auto mean = [&](const Values& at) {
      return mean_loss(at, labels, static_cast<double>(smoothing));
    };
    Labels larger;
    for (const auto& [first, second, part] : labels) larger.push_back(part > 0.5F ? second : first);
    expect_result(result, mean(values_of_logits), correct(shape_, values_of_logits, larger),
                  kLossTolerance);
    if (are_few(values_of_logits)) {
      expect_near(values(shape_, dlogits), numeric_gradient(values_of_logits, mean), kTolerance);
    }
    expect_same_on_host(shape_, dlogits, 2 * kTolerance);
  }

  const std::size_t classes_ = GetParam();
  const std::int32_t last_ = static_cast<std::int32_t>(GetParam()) - 1;
  const TensorShape shape_{3, {.channels = classes_}};
};

TEST_P(MixedLabels, HaveTheLossesOfBothByTheirParts) {
  expect_trained({{0, last_, 0.25F}, {1, 0, 0.75F}, {last_, last_, 0.5F}}, 0);
  expect_trained({{0, 1, 0.F}, {last_, 0, 1.F}, {1, 0, 0.5F}}, 0);
}

TEST_P(MixedLabels, AreSmoothedToo) {
  expect_trained({{0, last_, 0.25F}, {1, 0, 0.75F}, {last_, 0, 0.5F}}, 0.25F);
}

TEST_P(MixedLabels, DoNotCountWhereTheFirstIsNegative) {
  expect_trained({{0, last_, 0.25F}, {-1, -1, 0.F}, {1, 0, 0.75F}}, 0);
  expect_trained({{0, last_, 0.25F}, {-1, 0, 0.5F}, {1, 0, 0.75F}}, 0.25F);
}

// Labels with a single class give the same as plain labels, up to rounding.
TEST_P(MixedLabels, OfOneClassAreAsPlainOnes) {
  const Labels plain{1, -1, 0};
  Block logits = tensor(shape_, some_logits(shape_));
  Block label = numbers(plain);
  Block result = empty_result();
  Block dlogits = tensor(shape_);
  run(SoftmaxCrossEntropyTrain{.x = shape_}, {&logits, &label, &result, &dlogits});
  Block mixed_label = numbers(numbers_of({{1, 0, 0.F}, {-1, -1, 0.F}, {0, 1, 0.F}}));
  Block mixed_result = empty_result();
  Block mixed_dlogits = tensor(shape_);
  run(SoftmaxCrossEntropyTrain{.x = shape_, .mixes = true},
      {&logits, &mixed_label, &mixed_result, &mixed_dlogits});
  EXPECT_EQ(mixed_result.numbers<float>(), result.numbers<float>());
  expect_near(values(shape_, mixed_dlogits), values(shape_, dlogits), 1e-7);
}

TEST_P(MixedLabels, AreClasses) {
  Block logits = tensor(shape_, some_logits(shape_));
  Block result = empty_result();
  Block dlogits = tensor(shape_);
  for (const MixedLabel& wrong : {MixedLabel{0, last_ + 1, 0.5F}, {last_ + 1, 0, 0.5F}}) {
    Block label = numbers(numbers_of({wrong, {0, 0, 0.F}, {0, 0, 0.F}}));
    const auto train = [&] {
      run_tested(SoftmaxCrossEntropyTrain{.x = shape_, .mixes = true},
                 {&logits, &label, &result, &dlogits});
    };
    if (kIsCuda) {
      train();
      EXPECT_TRUE(std::isnan(result.numbers<float>()[0]));
    } else {
      EXPECT_THROW(train(), um::ContractError);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Classes, MixedLabels, ::testing::Values(2, 10, 33, 1000));

}  // namespace
}  // namespace spillway::test
