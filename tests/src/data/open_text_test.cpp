// Texts by open_dataset(), as networks of texts and of images meet them.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "nets/builder.h"
#include "src/io/data/open_dataset.h"
#include "tests/refusal.h"
#include "tests/src/data/text/small_vocabulary.h"
#include "tests/src/data/text/token_numbers.h"
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

// The bytes of a text are less than 103, too.
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

TEST_F(OpenText, RefusesBytesOutsideTheVocabulary) {
  EXPECT_EQ(refusal([&] { return open_dataset(text(), options_of(true, 110)); }),
            "token 0 of " + folder_.file("a.txt") +
                " is 116, but the network's vocabulary has only 110; use --vocabulary 123 or more");
  EXPECT_EQ(refusal([&] { return open_dataset(text(), options_of(false, 256)); }),
            "a text of bytes has 256 tokens, and the network needs one more for the mask, but its "
            "vocabulary is 256; use --vocabulary 257 or more");
}

TEST_F(OpenText, RefusesATokenizerOfMoreTokensThanTheVocabulary) {
  for (const bool is_causal : {true, false}) {
    DatasetOptions options = options_of(is_causal, 257);
    options.tokenizer = path();
    EXPECT_EQ(refusal([&] { return open_dataset(text(), options); }),
              "the tokenizer in " + path() + " has 258 tokens" +
                  (is_causal ? ", but its vocabulary is 257; use --vocabulary 258 or more"
                             : ", and the network needs one more for the mask, but its vocabulary "
                               "is 257; use --vocabulary 259 or more"));
  }
}

TEST_F(OpenText, RefusesATokenizerForWhatNeedsNone) {
  DatasetOptions options = options_of(true, 258);
  options.tokenizer = path();
  for (const std::string spec : {"synthetic", "tokens:x"}) {
    EXPECT_EQ(refusal([&] { return open_dataset(spec, options); }),
              "data set " + spec + " needs no tokenizer; use text:FILE, or leave it out");
  }
}

TEST_F(OpenText, RefusesImagesForANetworkOfTexts) {
  for (const std::string spec : {"idx:x", "cifar10:x"}) {
    EXPECT_EQ(refusal([&] { return open_dataset(spec, options_of(true, 300)); }),
              "the network learns from text, but data set " + spec +
                  " holds images; use synthetic, text:FILE or tokens:FILE");
  }
}

TEST_F(OpenText, RefusesTextForANetworkOfImages) {
  for (const std::string spec : {"text:x", "tokens:x"}) {
    EXPECT_EQ(refusal([&] {
                return open_dataset(spec, {.image = {3, 32, 32}, .classes = 10});
              }),
              "the network learns from images, but data set " + spec +
                  " holds text; use synthetic, images:DIR, idx:DIR or cifar10:DIR");
  }
}

TEST_F(OpenText, RefusesANetworkThatDoesNotScoreEachToken) {
  DatasetOptions options = options_of(true, 300);
  options.labels = nets::square(1);
  EXPECT_EQ(refusal([&] { return open_dataset("synthetic", options); }),
            "the network reads 16 tokens, but does not score each of them; end it with a loss over "
            "a vocabulary");
}

TEST_F(OpenText, RefusesABatchOfMoreWindowsThanThereAre) {
  DatasetOptions options = options_of(true, 128);
  options.batch = 4;
  EXPECT_EQ(refusal([&] { return open_dataset(text(), options); }),
            "the text is long enough for 3 windows of 16 tokens to learn from, too few for a batch "
            "of 4; use a smaller --batch or --sequence-length, or a longer text");
}

TEST_F(OpenText, AsksForTheFile) {
  for (const std::string kind : {"text", "tokens"}) {
    EXPECT_EQ(refusal([&] { return open_dataset(kind + ":", options_of(true, 300)); }),
              "data set " + kind + " needs the file: " + kind + ":FILE");
  }
}

TEST_F(OpenText, DrawsTextForANetworkOfTexts) {
  const DatasetPair data = open_dataset("synthetic", options_of(false, 300));
  EXPECT_EQ(data.train->image(), nets::tokens(kLength));
  std::vector<std::int32_t> labels(kLength);
  data.train->labels(0, labels);
  EXPECT_EQ(std::ranges::count(labels, -1), 14);  // 15 % of 16 are 2.4
}

}  // namespace
}  // namespace spillway::test
