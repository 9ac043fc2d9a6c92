#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "src/io/data/token_dataset.h"

namespace spillway {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr Masking kMasking{.mask = 999, .vocabulary = 1000, .seed = 7};
constexpr std::int32_t kOwn = 5;

// A window of tokens that are all the same.
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

// Of 15,000 places, 80 % +- 4 deviations of 0.33 % show the mask, 10 % +- 4 of 0.25 % another token
// and as many their own. (One drawn token in a thousand is the mask, and one their own.)
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

}  // namespace
}  // namespace spillway
