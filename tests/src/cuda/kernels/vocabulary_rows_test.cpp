// Tests the loss over a vocabulary without its products, which are cuBLASLt's.

#include "src/cuda/kernels/sequences/vocabulary_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "tests/src/ops/kernel_runner.h"

namespace spillway::cuda {
namespace {

constexpr std::size_t kJudgedRows = 5;
constexpr std::size_t kVocabularySize = 37;  // more than a warp has lanes
constexpr std::size_t kRowStride = 40;
// Tolerance for exponentials and quotients of numbers around 1.
constexpr double kRowTolerance = 2e-6;

const std::vector<std::int32_t> kRowLabels{3, -1, 36, 0, 17};

// The expected results of a row, by the definition in double.
struct Judged {
  double loss = 0;
  double correct = 0;
  Values slopes = Values(kVocabularySize, 0.0);
};

Judged judged_row(std::span<const double> logits, std::int32_t label, double share) {
  Judged row;
  if (label < 0) return row;
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (std::size_t v = 0; v < kVocabularySize; ++v)
    row.slopes[v] = share * std::exp(logits[v]) / sum;
  const auto truth = static_cast<std::size_t>(label);
  row.slopes[truth] -= share;
  row.loss = std::log(sum) - logits[truth];
  row.correct = std::ranges::max_element(logits) - logits.begin() == label ? 1 : 0;
  return row;
}

class VocabularyRows : public KernelRunner {
 protected:
  // The logits' padding is NaN, since no kernel may read it.
  VocabularyRows() {
    for (std::size_t n = 0; n < kJudgedRows; ++n) {
      for (std::size_t v = 0; v < kRowStride; ++v) {
        stored_.push_back(v < kVocabularySize ? static_cast<float>(drawn_[n * kVocabularySize + v])
                                              : std::numeric_limits<float>::quiet_NaN());
      }
    }
    // One prediction is correct.
    stored_[17 + 4 * kRowStride] = 2;
    drawn_[17 + 4 * kVocabularySize] = 2;
  }

  // Returns the logits of row `n`, including biases if `with_bias`.
  [[nodiscard]] Values logits(std::size_t n, bool with_bias) const {
    Values row{drawn_.begin() + static_cast<std::ptrdiff_t>(n * kVocabularySize),
               drawn_.begin() + static_cast<std::ptrdiff_t>((n + 1) * kVocabularySize)};
    for (std::size_t v = 0; with_bias && v < kVocabularySize; ++v) row[v] += biases_[v];
    return row;
  }
  // Returns the slopes that were written over rows of logits, with their padding.
  static Values slopes_in(const Block& logits, std::size_t stride = kRowStride) {
    Values slopes;
    const auto add_rows_of = [&](const auto& all) {
      const std::size_t row = stride * sizeof(float) / sizeof all[0];
      for (std::size_t begin = 0; begin < all.size(); begin += row) {
        for (std::size_t v = 0; v < stride; ++v) {
          slopes.push_back(static_cast<double>(float{all[begin + v]}));
        }
      }
    };
    is_bf16() ? add_rows_of(logits.numbers<Bfloat16>()) : add_rows_of(logits.numbers<float>());
    return slopes;
  }
  static LogitRows rows_in(Block& logits, const float* bias) {
    return {.logits = reinterpret_cast<float*>(logits.device.data()),
            .rows = kJudgedRows,
            .vocabulary = kVocabularySize,
            .stride = kRowStride,
            .bias = bias};
  }
  static float* floats_in(Block& block) { return reinterpret_cast<float*>(block.device.data()); }
  static const std::int32_t* labels_in(Block& block) {
    return reinterpret_cast<const std::int32_t*>(block.device.data());
  }

  Values drawn_ = host::random_values(kJudgedRows * kVocabularySize, 1);
  Values biases_ = host::random_values(kVocabularySize, 2);
  std::vector<float> stored_;
};

TEST_F(VocabularyRows, CountForAnEqualShareOfTheirBatchOrTheStep) {
  Block labels = numbers(kRowLabels);
  Block share = numbers(std::vector<float>{0});
  for (const std::uint64_t whole : {0, 7}) {
    Block of_step = numbers(std::vector<std::uint64_t>{whole});
    vocabulary_share(machine(), labels_in(labels), kJudgedRows,
                     reinterpret_cast<const std::uint64_t*>(of_step.device.data()),
                     floats_in(share));
    EXPECT_EQ(share.numbers<float>().front(), whole == 0 ? 1.F / 4 : 1.F / 7);
  }
}

TEST_F(VocabularyRows, AreJudgedAndGiveTheirSlopes) {
  for (const bool has_bias : {false, true}) {
    Block logits = numbers(stored_);
    std::vector<float> padded = host::to_floats(biases_);
    padded.resize(kRowStride);
    Block bias = numbers(padded);
    Block labels = numbers(kRowLabels);
    Block share = numbers(std::vector<float>{0.25F});
    Block losses = bytes(um::Bytes{kJudgedRows * sizeof(TokenLoss)});
    judge_rows(machine(), rows_in(logits, has_bias ? floats_in(bias) : nullptr), labels_in(labels),
               floats_in(share), /*smoothing=*/0,
               reinterpret_cast<TokenLoss*>(losses.device.data()));
    Values wanted_losses;
    Values wanted_slopes;
    for (std::size_t n = 0; n < kJudgedRows; ++n) {
      const Judged row = judged_row(this->logits(n, has_bias), kRowLabels[n], 0.25);
      wanted_losses.insert(wanted_losses.end(), {row.loss, row.correct});
      wanted_slopes.insert(wanted_slopes.end(), row.slopes.begin(), row.slopes.end());
      wanted_slopes.resize((n + 1) * kRowStride);
    }
    const std::vector<float> judged = losses.numbers<float>();
    host::expect_near({judged.begin(), judged.end()}, wanted_losses, kRowTolerance);
    expect_within(slopes_in(logits), wanted_slopes, kRowTolerance);
  }
}

TEST_F(VocabularyRows, AreOnlyJudgedAtEvaluation) {
  Block logits = numbers(stored_);
  Block labels = numbers(kRowLabels);
  Block losses = bytes(um::Bytes{kJudgedRows * sizeof(TokenLoss)});
  const std::vector<std::byte> before = logits.bytes();
  judge_rows(machine(), rows_in(logits, nullptr), labels_in(labels), nullptr,
             /*smoothing=*/0, reinterpret_cast<TokenLoss*>(losses.device.data()));
  EXPECT_EQ(logits.bytes(), before);
  const Judged last = judged_row(this->logits(4, false), 17, 1);
  EXPECT_EQ(last.correct, 1);
  EXPECT_NEAR(static_cast<double>(losses.numbers<float>()[8]), last.loss, kRowTolerance);
  EXPECT_EQ(losses.numbers<float>()[9], 1.F);
}

TEST_F(VocabularyRows, OfALabelThatIsNoTokenGiveNoNumber) {
  Block logits = numbers(stored_);
  Block labels = numbers(std::vector<std::int32_t>{37, 0, 0, 0, 0});
  Block losses = bytes(um::Bytes{kJudgedRows * sizeof(TokenLoss)});
  judge_rows(machine(), rows_in(logits, nullptr), labels_in(labels), nullptr,
             /*smoothing=*/0, reinterpret_cast<TokenLoss*>(losses.device.data()));
  EXPECT_TRUE(std::isnan(losses.numbers<float>()[0]));
  EXPECT_FALSE(std::isnan(losses.numbers<float>()[2]));
}

// A row that a block reads in several tiles. The largest logit stands in the last one.
TEST_F(VocabularyRows, OfManyTokensAreJudged) {
  constexpr std::size_t kMany = 17000;
  constexpr std::size_t kStride = 17000;
  static_assert(kMany % 8 == 0);
  Values drawn = host::random_values(2 * kMany, 4);
  drawn[kMany - 3] = 4;
  Block logits = numbers(host::to_floats(drawn));
  Block labels = numbers(std::vector<std::int32_t>{kMany - 3, 5});
  Block share = numbers(std::vector<float>{0.5F});
  Block losses = bytes(um::Bytes{2 * sizeof(TokenLoss)});
  judge_rows(machine(),
             {.logits = floats_in(logits),
              .rows = 2,
              .vocabulary = kMany,
              .stride = kStride,
              .bias = nullptr},
             labels_in(labels), floats_in(share), /*smoothing=*/0,
             reinterpret_cast<TokenLoss*>(losses.device.data()));
  const Values slopes = slopes_in(logits, kStride);
  const std::vector<float> judged = losses.numbers<float>();
  for (std::size_t n = 0; n < 2; ++n) {
    const std::size_t label = n == 0 ? kMany - 3 : 5;
    double sum = 0;
    for (std::size_t v = 0; v < kMany; ++v) sum += std::exp(drawn[n * kMany + v]);
    EXPECT_NEAR(static_cast<double>(judged[2 * n]), std::log(sum) - drawn[n * kMany + label],
                kRowTolerance);
    EXPECT_EQ(judged[2 * n + 1], n == 0 ? 1.F : 0.F);
    for (std::size_t v = 0; v < kMany; ++v) {
      const double wanted = 0.5 * (std::exp(drawn[n * kMany + v]) / sum - (v == label ? 1 : 0));
      ASSERT_NEAR(slopes[n * kMany + v], wanted, std::abs(wanted) / 256 + 1e-9) << n << ' ' << v;
    }
  }
}

// As biases of tokens that a text never has.
TEST_F(VocabularyRows, MayHaveLogitsOfMinusInfinity) {
  for (std::size_t v = 0; v < 9; ++v) stored_[v] = -std::numeric_limits<float>::infinity();
  Block logits = numbers(stored_);
  Block labels = numbers(std::vector<std::int32_t>{20, 0, 0, 0, 0});
  Block losses = bytes(um::Bytes{kJudgedRows * sizeof(TokenLoss)});
  judge_rows(machine(), rows_in(logits, nullptr), labels_in(labels), nullptr,
             /*smoothing=*/0, reinterpret_cast<TokenLoss*>(losses.device.data()));
  double sum = 0;
  for (std::size_t v = 9; v < kVocabularySize; ++v) sum += std::exp(drawn_[v]);
  EXPECT_NEAR(static_cast<double>(losses.numbers<float>()[0]), std::log(sum) - drawn_[20],
              kRowTolerance);
}

// Gradients of the biases are summed over chunks.
TEST_F(VocabularyRows, AreAddedUpByColumn) {
  const Values numbers_of_rows = random_values(kJudgedRows * kRowStride, 3);
  Block slopes = numbers(host::to_floats(numbers_of_rows));
  if (is_bf16()) {
    std::vector<Bfloat16> narrow(2 * kJudgedRows * kRowStride, Bfloat16{NAN});
    for (std::size_t i = 0; i < numbers_of_rows.size(); ++i) {
      narrow[i / kRowStride * 2 * kRowStride + i % kRowStride] =
          static_cast<float>(numbers_of_rows[i]);
    }
    slopes.device.write(std::as_bytes(std::span{narrow}));
  }
  Block sums = numbers(std::vector<float>(kRowStride, 123));
  for (const bool adds : {false, true}) {
    sum_columns(machine(), rows_in(slopes, nullptr), floats_in(sums), adds);
    Values wanted(kRowStride, 0.0);
    for (std::size_t i = 0; i < numbers_of_rows.size(); ++i) {
      wanted[i % kRowStride] += numbers_of_rows[i] * (adds ? 2 : 1);
    }
    const std::vector<float> made = sums.numbers<float>();
    host::expect_near({made.begin(), made.end()}, wanted, kRowTolerance);
  }
}

TEST_F(VocabularyRows, AddUpToAResult) {
  std::vector<float> judged;
  for (int i = 0; i < 300; ++i) {
    judged.insert(judged.end(), {static_cast<float>(i), i % 3 == 0 ? 1.F : 0.F});
  }
  Block losses = numbers(judged);
  Block share = numbers(std::vector<float>{0.5F});
  Block result = numbers(std::vector<float>{123, 123});
  const auto* const of_tokens = reinterpret_cast<const TokenLoss*>(losses.device.data());
  write_vocabulary_result(machine(), of_tokens, 300, floats_in(share), floats_in(result));
  EXPECT_EQ(result.numbers<float>(), (std::vector<float>{299 * 300 / 4, 100}));
  write_vocabulary_result(machine(), of_tokens, 300, nullptr, floats_in(result));
  EXPECT_EQ(result.numbers<float>(), (std::vector<float>{299 * 300 / 2, 100}));
}

}  // namespace
}  // namespace spillway::cuda
