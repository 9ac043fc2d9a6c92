// Tests the loss over a vocabulary with logits computed in several chunks.

#include <cmath>

#include "tests/src/host/tested_kernels.h"

namespace spillway::host {
namespace {

constexpr std::size_t kTokens = 2100;
constexpr std::size_t kVocabulary = 16'384;
constexpr std::size_t kChannels = 8;

class VocabularyChunks : public host_tested::KernelRunner {
 protected:
  static constexpr VocabularyGeometry kGeometry{
      .x = {.batch = 1, .image = nets::sequence(kTokens, kChannels)},
      .vocabulary = kVocabulary,
      .bias = true};

  // Returns channel c of token t; tensors store channels first.
  [[nodiscard]] double x_at(std::size_t t, std::size_t c) const { return x_[c * kTokens + t]; }

  // Computes the loss and its gradients by definition.
  void differentiate() {
    std::vector<double> row(kVocabulary);
    for (std::size_t t = 0; t < kTokens; ++t) {
      double sum = 0;
      for (std::size_t v = 0; v < kVocabulary; ++v) {
        double logit = bias_[v];
        for (std::size_t c = 0; c < kChannels; ++c) logit += x_at(t, c) * table_[v * kChannels + c];
        row[v] = std::exp(logit);
        sum += row[v];
      }
      const auto label = static_cast<std::size_t>(labels_[t]);
      loss_ += std::log(sum / row[label]) / kTokens;
      for (std::size_t v = 0; v < kVocabulary; ++v) {
        const double slope = (row[v] / sum - (v == label ? 1 : 0)) / kTokens;
        dbias_[v] += slope;
        for (std::size_t c = 0; c < kChannels; ++c) {
          dtable_[v * kChannels + c] += slope * x_at(t, c);
          dx_[c * kTokens + t] += slope * table_[v * kChannels + c];
        }
      }
    }
  }

  // Compares by the norm of the difference, relative to the norm of the expected numbers.
  static void expect_alike(const Values& numbers, const Values& expected, const char* what) {
    ASSERT_EQ(numbers.size(), expected.size());
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      difference += std::pow(numbers[i] - expected[i], 2);
      norm += std::pow(expected[i], 2);
    }
    EXPECT_LE(std::sqrt(difference / norm), test::is_bf16() ? 5e-3 : 1e-5) << what;
  }

  const Values x_ = test::random_values(kTokens * kChannels, 1);
  const Values table_ = test::random_values(kVocabulary * kChannels, 2);
  const Values bias_ = test::random_values(kVocabulary, 3);
  const std::vector<std::int32_t> labels_ = [] {
    std::vector<std::int32_t> labels(kTokens);
    for (std::size_t t = 0; t < kTokens; ++t) {
      labels[t] = static_cast<std::int32_t>(t * 7919 % kVocabulary);
    }
    return labels;
  }();
  double loss_ = 0;
  Values dx_ = Values(kTokens * kChannels);
  Values dtable_ = Values(kVocabulary * kChannels);
  Values dbias_ = Values(kVocabulary);
};

// Three chunks: the first, the middle and the last.
TEST_F(VocabularyChunks, AddUpToTheWholeLoss) {
  static_assert(kTokens * kVocabulary > 2 * kVocabularyChunk);
  static_assert(kTokens * kVocabulary < 3 * kVocabularyChunk && kTokens % 3 == 0);
  const VocabularyLossTrain op{.geometry = kGeometry};
  Block x = tensor(kGeometry.x, x_);
  Block table = parameters(kGeometry.table(), table_);
  Block bias = parameters(kGeometry.bias_parameters(), bias_);
  Block labels = numbers(labels_);
  Block result{um::Bytes{2 * sizeof(float)}};
  Block dx = tensor(kGeometry.x);
  Block dtable = parameters(kGeometry.table());
  Block dbias = parameters(kGeometry.bias_parameters());
  run(op, {&x, &table, &labels, &bias, &result, &dx, &dtable, &dbias});
  differentiate();
  EXPECT_NEAR(static_cast<double>(result.floats()[0]), loss_, test::is_bf16() ? 0.02 : 1e-4);
  expect_alike(values(kGeometry.x, dx), dx_, "dx");
  expect_alike(values(kGeometry.table(), dtable), dtable_, "dtable");
  expect_alike(values(kGeometry.bias_parameters(), dbias), dbias_, "dbias");
}

}  // namespace
}  // namespace spillway::host
