#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "src/io/data/synthetic.h"
#include "tests/src/data/text/token_numbers.h"

namespace spillway::test {
namespace {

using Tokens = std::vector<std::int32_t>;

TokenTask drawn_task(std::size_t vocabulary, std::uint64_t seed = 7) {
  return {.length = 32, .vocabulary = vocabulary, .seed = seed, .mask = mask_of(vocabulary)};
}

TEST(SyntheticText, DrawsTheSameWindowEachTime) {
  const SyntheticText a{drawn_task(1000), 100, Split::kTrain};
  const SyntheticText b{drawn_task(1000), 5000, Split::kTrain};
  EXPECT_EQ(window_tokens(a, 42), window_tokens(b, 42));
  EXPECT_NE(window_tokens(a, 42), window_tokens(a, 43));
  EXPECT_NE(window_tokens(a, 42),
            window_tokens(SyntheticText{drawn_task(1000), 100, Split::kTest}, 42));
  EXPECT_NE(window_tokens(a, 42),
            window_tokens(SyntheticText{drawn_task(1000, 8), 100, Split::kTrain}, 42));
}

// Written down once, so that a change is noticed: a training that goes on from a checkpoint must
// see the same text.
TEST(SyntheticText, DrawsTheSameWindowAsEver) {
  const SyntheticText text{drawn_task(50'257), 100, Split::kTrain};
  Tokens tokens = window_tokens(text, 42);
  tokens.resize(6);
  EXPECT_EQ(tokens, (Tokens{21195, 15700, 43175, 0, 18840, 43960}));
}

TEST(SyntheticText, LabelsEachTokenWithTheNext) {
  const SyntheticText text{drawn_task(1000), 100, Split::kTrain};
  const Tokens tokens = window_tokens(text, 5);
  Tokens labels(32);
  text.labels(5, labels);
  EXPECT_EQ(Tokens(labels.begin(), labels.end() - 1), Tokens(tokens.begin() + 1, tokens.end()));
}

TEST(SyntheticText, NeverMakesTheMask) {
  for (const std::size_t vocabulary : {2U, 64U, 65U, 257U, 30'522U, 50'257U}) {
    const SyntheticText text{drawn_task(vocabulary), 100, Split::kTrain};
    std::set<std::int32_t> seen;
    for (std::size_t i = 0; i < 100; ++i) {
      for (const std::int32_t token : window_tokens(text, i)) seen.insert(token);
    }
    EXPECT_FALSE(seen.contains(mask_of(vocabulary))) << vocabulary;
    EXPECT_LT(*seen.rbegin(), static_cast<std::int32_t>(vocabulary));
    EXPECT_LE(seen.size(), 64U);
  }
}

// The entropy of what comes behind a token, measured on 64,000 pairs, is at most 7/4 ln 2 = 1.213,
// and that of a token alone is far more.
TEST(SyntheticText, CanBeLearntFromTheTokenBefore) {
  const SyntheticText text{drawn_task(50'257), 2000, Split::kTrain};
  std::map<std::pair<std::int32_t, std::int32_t>, double> pairs;
  std::map<std::int32_t, double> singles;
  double count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const Tokens tokens = window_tokens(text, i);
    Tokens next(32);
    text.labels(i, next);
    for (std::size_t j = 0; j < 32; ++j) {
      pairs[{tokens[j], next[j]}] += 1;
      singles[tokens[j]] += 1;
      count += 1;
    }
  }
  const auto entropy = [&](const auto& counts) {
    double sum = 0;
    for (const auto& [key, times] : counts) sum -= times / count * std::log(times / count);
    return sum;
  };
  EXPECT_LT(entropy(pairs) - entropy(singles), 1.22);
  EXPECT_GT(entropy(pairs) - entropy(singles), 0.8);
  EXPECT_GT(entropy(singles), 2.5);
}

TEST(SyntheticText, HasSplitsOfOneLanguage) {
  const DatasetPair data = make_synthetic_text(drawn_task(100));
  EXPECT_EQ(data.train->size(), kSyntheticTrainTexts);
  EXPECT_EQ(data.test->size(), kSyntheticTestTexts);
  std::map<std::int32_t, std::set<std::int32_t>> followers;
  for (const Dataset* set : {data.train.get(), data.test.get()}) {
    for (std::size_t i = 0; i < 200; ++i) {
      const Tokens tokens = window_tokens(*set, i);
      for (std::size_t j = 0; j + 1 < 32; ++j) followers[tokens[j]].insert(tokens[j + 1]);
    }
  }
  for (const auto& [token, next] : followers) EXPECT_LE(next.size(), 4U) << token;
  EXPECT_EQ(data.train->name(), "synthetic text of 64 tokens");
}

TEST(SyntheticText, IsKnownByWhatItIsDrawnFrom) {
  const auto content = [](const TokenTask& task) {
    return content_sha256(make_synthetic_text(task));
  };
  EXPECT_EQ(content(drawn_task(100)), content(drawn_task(100)));
  EXPECT_NE(content(drawn_task(100)), content(drawn_task(101)));
  EXPECT_NE(content(drawn_task(100)), content(drawn_task(100, 8)));
}

}  // namespace
}  // namespace spillway::test
