// Texts opened by open_dataset() for networks of texts and of images.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "src/io/data/open_dataset.h"
#include "src/io/data/synthetic.h"
#include "tests/refusal.h"
#include "tests/src/io/text/text_files.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

constexpr std::size_t kLength = 16;

nets::Network small_network(bool is_causal, std::size_t vocabulary) {
  nets::Builder builder{"small", nets::tokens(kLength)};
  const auto table = builder.add("table", nets::Embedding{.vocabulary = vocabulary, .features = 12},
                                 {builder.input()});
  const auto heads =
      builder.add("attention", nets::Attention{.heads = 2, .causal = is_causal}, {table});
  const auto x = builder.linear("out", heads, {.features = 12});
  return builder.build(x, {.vocabulary = vocabulary}, table);
}

DatasetOptions options_of(bool is_causal, std::size_t vocabulary) {
  return dataset_options(small_network(is_causal, vocabulary), 1, 7);
}

TEST(DatasetOptionsOfANetwork, SayWhatItReadsAndLearns) {
  const DatasetOptions options = options_of(true, 300);
  EXPECT_EQ(options.image, nets::tokens(kLength));
  EXPECT_EQ(options.classes, 300U);
  EXPECT_EQ(options.labels, (nets::Extent{kLength, 1}));
  EXPECT_EQ(options.objective, Objective::kNextToken);
  EXPECT_EQ(options_of(false, 300).objective, Objective::kMaskedTokens);
}

class OpenText : public testing::Test {
 protected:
  OpenText() {
    SmallVocabulary::write(folder_, "a.txt", text_);
    SmallVocabulary{}.write_to(folder_);
  }
  [[nodiscard]] std::string text() const { return "text:" + folder_.file("a.txt"); }
  [[nodiscard]] std::string path() const { return folder_.path().string(); }

  static std::vector<float> first_window(const Dataset& set) {
    std::vector<float> image(set.image().elements());
    set.read(0, image);
    return image;
  }

  TemporaryFolder folder_;
  std::string text_ = "the quick brown fox jumps over the lazy dog, and the dog does not care";
};

TEST_F(OpenText, HasTheBytesOfAFile) {
  const DatasetPair data = open_dataset(text(), options_of(true, 128));
  const std::vector<float> window = first_window(*data.test);
  std::string read(window.size(), ' ');
  std::ranges::transform(window, read.begin(), [](float c) { return static_cast<char>(c); });
  EXPECT_EQ(read, text_.substr(text_.size() - kLength - 1, kLength));
}

TEST_F(OpenText, HasTheBytePairsOfATokenizer) {
  DatasetOptions options = options_of(true, 258);
  options.tokenizer = path();
  const DatasetPair data = open_dataset(text(), options);
  std::vector<float> tokens;
  for (std::size_t i = 0; i < data.train->size(); ++i) {
    std::vector<float> image(kLength);
    data.train->read(i, image);
    tokens.insert(tokens.end(), image.begin(), image.end());
  }
  EXPECT_GE(std::ranges::count(tokens, 257.0F), 1);
  EXPECT_EQ(data.train->name(), "byte pairs of " + folder_.file("a.txt"));
}

TEST_F(OpenText, MayHaveAFileToTestOn) {
  SmallVocabulary::write(folder_, "b.txt", std::string(17, 'x'));
  const DatasetPair data =
      open_dataset(text() + "," + folder_.file("b.txt"), options_of(true, 128));
  EXPECT_EQ(data.train->size(), (text_.size() - 1) / kLength);
  EXPECT_EQ(first_window(*data.test), std::vector<float>(kLength, 'x'));
}

TEST_F(OpenText, TakesAFileWithACommaForOne) {
  SmallVocabulary::write(folder_, "a,b.txt", text_);
  EXPECT_EQ(open_dataset("text:" + folder_.file("a,b.txt"), options_of(true, 128)).test->size(),
            1U);
}

TEST_F(OpenText, HasTokensOfAFile) {
  folder_.write("a.bin", token_file(std::vector<std::uint16_t>(40, 77)));
  const DatasetPair data = open_dataset("tokens:" + folder_.file("a.bin"), options_of(true, 128));
  EXPECT_EQ(first_window(*data.train), std::vector<float>(kLength, 77));
}

// BERT's mask, 103, is also a byte, so the mask is the last token.
TEST_F(OpenText, HidesBytesBehindTheLastTokenOfTheVocabulary) {
  for (const std::size_t vocabulary : {257U, 30'522U}) {
    const DatasetPair data = open_dataset(text(), options_of(false, vocabulary));
    int masks = 0;
    for (std::size_t i = 0; i < data.train->size(); ++i) {
      std::vector<float> image(kLength);
      data.train->read(i, image);
      masks += static_cast<int>(std::ranges::count(image, static_cast<float>(vocabulary - 1)));
    }
    EXPECT_GT(masks, 0) << vocabulary;
  }
}

TEST_F(OpenText, RefusesANetworkThatDoesNotScoreEachToken) {
  DatasetOptions options = options_of(true, 300);
  options.labels = nets::square(1);
  EXPECT_EQ(refusal([&] { return open_dataset("synthetic", options); }),
            "the network reads 16 tokens, but does not score each of them; end it with a loss over "
            "a vocabulary");
}

TEST_F(OpenText, DrawsTextForANetworkOfTexts) {
  const DatasetPair data = open_dataset("synthetic", options_of(false, 300));
  EXPECT_EQ(data.train->image(), nets::tokens(kLength));
  std::vector<std::int32_t> labels(kLength);
  data.train->labels(0, labels);
  EXPECT_EQ(std::ranges::count(labels, -1), 14);  // 15 % of 16 are 2.4, so 2 are hidden
}

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

// Recorded once to detect changes: a resumed training must see the same text.
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

// The entropy of a token given the one before, measured on 64,000 pairs, is at most 7/4 ln 2 =
// 1.213. The entropy of a single token is far more.
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
