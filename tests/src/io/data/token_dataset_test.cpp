#include "src/io/data/token_dataset.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nets/builder.h"
#include "src/io/data/open_dataset.h"
#include "src/io/data/synthetic.h"
#include "src/io/text/token_file.h"
#include "tests/refusal.h"
#include "tests/src/io/text/text_files.h"
#include "tests/temporary_folder.h"
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

class TokenFile : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.file("a.bin"); }

  TemporaryFolder folder_;
};

TEST_F(TokenFile, OfLlmCIsReadBehindItsHeader) {
  folder_.write("a.bin", token_file({7, 50256, 0, 65535}));
  const auto text = open_token_file(path());
  EXPECT_EQ(all_tokens(*text), (Tokens{7, 50256, 0, 65535}));
  EXPECT_EQ(text->name(), "llm.c's tokens in " + path());
}

TEST_F(TokenFile, WithoutAHeaderIsAllTokens) {
  folder_.write("a.bin", raw_tokens({7, 50256, 0}));
  const auto text = open_token_file(path());
  EXPECT_EQ(all_tokens(*text), (Tokens{7, 50256, 0}));
  EXPECT_EQ(text->name(), "16-bit tokens, without a header, in " + path());
}

TEST_F(TokenFile, IsReadFromAnyPlace) {
  folder_.write("a.bin", token_file({1, 2, 3, 4, 5}));
  Tokens part(2);
  open_token_file(path())->read(3, part);
  EXPECT_EQ(part, (Tokens{4, 5}));
}

TEST_F(TokenFile, OfBytesHasATokenForEach) {
  folder_.write("a.txt", {'a', 0, 255});
  const auto text = open_bytes(folder_.file("a.txt"));
  EXPECT_EQ(all_tokens(*text), (Tokens{97, 0, 255}));
  EXPECT_EQ(text->name(), "bytes of " + folder_.file("a.txt"));
}

TEST_F(TokenFile, IsKnownByItsBytesAndByTheWayTheyAreRead) {
  folder_.write("a.bin", raw_tokens({1, 2}));
  const std::string content = open_token_file(path())->content_sha256();
  EXPECT_NE(open_bytes(path())->content_sha256(), content);
  folder_.write("b.bin", raw_tokens({1, 2}));
  EXPECT_EQ(open_token_file(folder_.file("b.bin"))->content_sha256(), content);
  folder_.write("b.bin", raw_tokens({1, 3}));
  EXPECT_NE(open_token_file(folder_.file("b.bin"))->content_sha256(), content);
}

TEST_F(TokenFile, OfATokenOutsideTheVocabularyIsRefused) {
  folder_.write("a.bin", token_file({1, 2, 99, 300, 100}));
  const auto text = open_token_file(path());
  expect_in_vocabulary(*text, 301);
  EXPECT_EQ(refusal([&] {
              expect_in_vocabulary(*text, 100);
              return 0;
            }),
            "token 3 of " + path() +
                " is 300, but the network's vocabulary has only 100; use --vocabulary 301 or more");
}

TEST_F(TokenFile, NoticesThatItShrinksLater) {
  folder_.write("a.bin", raw_tokens({1, 2, 3, 4}));
  const auto text = open_token_file(path());
  std::filesystem::resize_file(path(), 4);
  EXPECT_EQ(refusal([&] { return all_tokens(*text); }),
            path() + " ends at byte 4 and goes on no further; copy or download it again");
}

// Texts opened by open_dataset() for networks of texts and of images.

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
