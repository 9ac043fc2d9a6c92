// The loss of images that two images are mixed in.

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "tests/src/ops/kernels/cross_entropy_runner.h"

namespace spillway::test {
namespace {

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
  // The loss of sample `n` for one class.
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

// Without a part of another, numbers are those of plain labels, up to rounding.
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
