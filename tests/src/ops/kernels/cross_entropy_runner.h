#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::test {

/// Runs the losses and compares them with sums in double.
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

}  // namespace spillway::test
