#include "src/io/data/token_dataset.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/refusal.h"
#include "tests/src/io/text/text_files.h"
#include "um/error.h"

namespace spillway::test {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr Masking kMasking{.mask = 999, .vocabulary = 1000, .seed = 7};
constexpr std::int32_t kOwn = 5;

// Hides tokens of a window in which all are equal.
Tokens hidden(std::size_t index, std::size_t length, const Masking& masking = kMasking) {
  Tokens tokens(length, kOwn);
  hide_tokens(masking, index, tokens);
  return tokens;
}
Tokens labels(std::size_t index, std::size_t length, const Masking& masking = kMasking) {
  Tokens tokens(length, kOwn);
  keep_hidden(masking, index, tokens);
  return tokens;
}

TEST(Masking, LabelsFifteenInAHundred) {
  for (std::size_t index = 0; index < 50; ++index) {
    const Tokens all = labels(index, 200);
    EXPECT_EQ(std::ranges::count(all, kOwn), 30);
    EXPECT_EQ(std::ranges::count(all, -1), 170);
  }
}

TEST(Masking, LabelsOneOfAFewTokens) {
  for (const std::size_t length : {1U, 2U, 6U}) {
    EXPECT_EQ(std::ranges::count(labels(3, length), kOwn), 1) << length;
  }
}

TEST(Masking, ChangesNoTokenThatHasNoLabel) {
  for (std::size_t index = 0; index < 50; ++index) {
    const Tokens seen = hidden(index, 100);
    const Tokens all = labels(index, 100);
    for (std::size_t i = 0; i < 100; ++i) EXPECT_TRUE(all[i] == kOwn || seen[i] == kOwn);
  }
}

// At 15,000 places, 80 % +- 4 deviations of 0.33 % show the mask. 10 % +- 4 deviations of 0.25 %
// show another token, and as many their own. (One random token in a thousand is the mask, and one
// is their own.)
TEST(Masking, ShowsTheMaskMostly) {
  double masks = 0;
  double own = 0;
  double others = 0;
  for (std::size_t index = 0; index < 1000; ++index) {
    const Tokens seen = hidden(index, 100);
    const Tokens all = labels(index, 100);
    for (std::size_t i = 0; i < 100; ++i) {
      if (all[i] < 0) continue;
      (seen[i] == kMasking.mask ? masks : seen[i] == kOwn ? own : others) += 1;
    }
  }
  EXPECT_EQ(masks + own + others, 15'000);
  EXPECT_NEAR(masks / 15'000, 0.8, 0.013);
  EXPECT_NEAR(own / 15'000, 0.1, 0.01);
  EXPECT_NEAR(others / 15'000, 0.1, 0.01);
}

TEST(Masking, HidesAllPlacesAlike) {
  std::vector<int> times(20, 0);
  for (std::size_t index = 0; index < 4000; ++index) {
    const Tokens all = labels(index, 20);
    for (std::size_t i = 0; i < 20; ++i) times[i] += all[i] >= 0 ? 1 : 0;
  }
  for (const int count : times) EXPECT_NEAR(count, 600, 100);  // 4 deviations of 22.6, rounded up
}

TEST(Masking, IsAFunctionOfSeedAndWindow) {
  EXPECT_EQ(hidden(3, 100), hidden(3, 100));
  EXPECT_NE(labels(3, 100), labels(4, 100));
  Masking other = kMasking;
  other.seed = 8;
  EXPECT_NE(labels(3, 100), labels(3, 100, other));
}

TEST(Masking, HasTheMaskOfBertInItsVocabulary) {
  EXPECT_EQ(mask_of(30'522), 103);
  EXPECT_EQ(mask_of(257), 256);
}

// Token i of the `size` tokens is i.
class CountedText final : public TokenSequence {
 public:
  explicit CountedText(std::uint64_t size) : size_{size} {}
  [[nodiscard]] std::string name() const override { return "numbers"; }
  [[nodiscard]] std::string file() const override { return "numbers.bin"; }
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  void read(std::uint64_t first, std::span<std::int32_t> tokens) const override {
    um::expects(first + tokens.size() <= size_, "tokens that there are");
    std::iota(tokens.begin(), tokens.end(), static_cast<std::int32_t>(first));
  }
  [[nodiscard]] std::string content_sha256() const override { return std::to_string(size_); }

 private:
  std::uint64_t size_;
};

constexpr std::size_t kVocabulary = 1U << 20U;

TokenTask task_of(std::size_t length, Objective objective = Objective::kNextToken,
                  std::uint64_t seed = 7) {
  return {.length = length,
          .vocabulary = kVocabulary,
          .objective = objective,
          .seed = seed,
          .mask = mask_of(kVocabulary)};
}

DatasetPair windows(std::uint64_t size, const TokenTask& task) {
  return cut_windows(std::make_unique<CountedText>(size), task);
}

TEST(TextWindows, AreImagesOfTokensWithALabelForEach) {
  const DatasetPair data = windows(1000, task_of(16));
  EXPECT_EQ(data.train->image(), nets::tokens(16));
  EXPECT_EQ(data.train->classes(), kVocabulary);
  EXPECT_EQ(labels_each(*data.train), 16U);
  EXPECT_EQ(data.train->name(), "numbers");
}

// 100 tokens: 17 for testing and 83 for training, the last only as a label. 82 / 16 is 5, with 2
// left over.
TEST(TextWindows, LabelEachTokenWithTheNext) {
  const DatasetPair data = windows(100, task_of(16));
  ASSERT_EQ(data.train->size(), 5U);
  const Tokens first = window_tokens(*data.train, 0);
  EXPECT_LE(first[0], 2);
  for (std::size_t window = 0; window < 5; ++window) {
    Tokens expected(16);
    std::iota(expected.begin(), expected.end(), first[0] + static_cast<std::int32_t>(16 * window));
    EXPECT_EQ(window_tokens(*data.train, window), expected);
    for (std::int32_t& token : expected) ++token;
    EXPECT_EQ(window_labels(*data.train, window), expected);
  }
}

TEST(TextWindows, BeginWhereTheSeedSays) {
  std::set<std::int32_t> begins;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const DatasetPair data = windows(100, task_of(16, Objective::kNextToken, seed));
    begins.insert(window_tokens(*data.train, 0)[0]);
    EXPECT_EQ(window_tokens(*data.test, 0)[0], 83);  // 17 tokens are more than a tenth
  }
  EXPECT_EQ(begins.size(), 3U);
}

TEST(TextWindows, OfMaskedTokensNeedNoTokenMore) {
  const DatasetPair data = windows(32, task_of(16, Objective::kMaskedTokens));
  EXPECT_EQ(data.train->size(), 1U);
  EXPECT_EQ(data.test->size(), 1U);
  const Tokens tokens = window_tokens(*data.test, 0);
  const Tokens labels = window_labels(*data.test, 0);
  for (std::int32_t i = 0; i < 16; ++i) {
    const auto place = static_cast<std::size_t>(i);
    EXPECT_TRUE(labels[place] == 16 + i || (labels[place] == -1 && tokens[place] == 16 + i));
  }
}

TEST(TextWindows, OfATextToTestOnAreAllOfIt) {
  const DatasetPair data = cut_windows(std::make_unique<CountedText>(33),
                                       std::make_unique<CountedText>(65), task_of(16));
  EXPECT_EQ(data.train->size(), 2U);
  EXPECT_EQ(data.test->size(), 4U);
  EXPECT_EQ(window_tokens(*data.test, 3).back(), 63);
}

TEST(TextWindows, NeedTwoOfThem) {
  EXPECT_EQ(windows(34, task_of(16)).train->size(), 1U);
  EXPECT_EQ(
      refusal([] { return windows(33, task_of(16)); }),
      "numbers.bin has 33 tokens, but one window to learn from and one to test on of 16 needs "
      "34; use a longer text or a smaller --sequence-length");
  EXPECT_EQ(refusal([] {
              return cut_windows(std::make_unique<CountedText>(40),
                                 std::make_unique<CountedText>(16), task_of(16));
            }),
            "numbers.bin has 16 tokens, but a window to test on of 16 needs 17; use a longer text "
            "or a smaller --sequence-length");
}

TEST(TextWindows, AreKnownByTextLengthObjectiveAndSeed) {
  const auto content = [](std::uint64_t size, const TokenTask& task) {
    return content_sha256(windows(size, task));
  };
  const std::string first = content(1000, task_of(16));
  EXPECT_EQ(content(1000, task_of(16)), first);
  EXPECT_NE(content(1001, task_of(16)), first);
  EXPECT_NE(content(1000, task_of(15)), first);
  EXPECT_NE(content(1000, task_of(16, Objective::kMaskedTokens)), first);
  EXPECT_NE(content(1000, task_of(16, Objective::kNextToken, 8)), first);
}

// For all sizes: windows are consecutive, all fit, and no training token is tested.
RC_GTEST_PROP(TextWindowsOfAnySize, NeverShareATokenWithTheHeldOutPart, ()) {
  const std::size_t length = *rc::gen::inRange<std::size_t>(1, 40);
  const TokenTask task =
      task_of(length, Objective::kNextToken, *rc::gen::arbitrary<std::uint64_t>());
  const std::uint64_t size = *rc::gen::inRange<std::uint64_t>(2 * length + 2, 2000);
  const DatasetPair data = windows(size, task);
  RC_ASSERT(data.train->size() >= 1 && data.test->size() >= 1);
  const std::int32_t last = window_labels(*data.train, data.train->size() - 1).back();
  RC_ASSERT(last < window_tokens(*data.test, 0).front());
  RC_ASSERT(window_labels(*data.test, data.test->size() - 1).back() <
            static_cast<std::int32_t>(size));
  const std::int32_t begin = window_tokens(*data.train, 0).front();
  RC_ASSERT(begin >= 0 && begin < static_cast<std::int32_t>(length));
  for (std::size_t i = 0; i < data.train->size(); ++i) {
    RC_ASSERT(window_tokens(*data.train, i).front() ==
              begin + static_cast<std::int32_t>(i * length));
  }
}

}  // namespace
}  // namespace spillway::test
