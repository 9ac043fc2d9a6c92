#include "src/io/text/byte_pair_encoder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/io/text/text_codec.h"
#include "tests/refusal.h"
#include "tests/src/data/text/small_vocabulary.h"
#include "tests/src/data/text/token_numbers.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using Tokens = std::vector<std::int32_t>;

BytePairEncoder encoder_of(const SmallVocabulary& files, const TemporaryFolder& folder) {
  files.write_to(folder);
  return BytePairEncoder{read_byte_pairs(folder.path())};
}

TEST(BytePairEncoder, MergesWhatComesFirstInTheList) {
  const TemporaryFolder folder;
  BytePairEncoder encoder = encoder_of({}, folder);
  EXPECT_EQ(encoder.encode("the th"), (Tokens{257, ' ', 256}));
  EXPECT_EQ(encoder.encode("tthh"), (Tokens{'t', 256, 'h'}));
  EXPECT_EQ(encoder.encode(""), Tokens{});
}

TEST(BytePairEncoder, MergesWithinWordsAlone) {
  const TemporaryFolder folder;
  SmallVocabulary files;
  files.encoder["e."] = 258;
  files.merges += "e .\n";
  BytePairEncoder encoder = encoder_of(files, folder);
  EXPECT_EQ(encoder.encode("the."), (Tokens{257, '.'}));
}

TEST(BytePairEncoder, TakesTheEndOfATextForOneTokenWhereThereIsSuch) {
  const TemporaryFolder folder;
  EXPECT_EQ(encoder_of({}, folder).encode("<|endoftext|>").size(), 13U);
  SmallVocabulary files;
  files.encoder["<|endoftext|>"] = 300;
  EXPECT_EQ(encoder_of(files, folder).encode("th<|endoftext|>e"), (Tokens{256, 300, 'e'}));
}

// 'a' to 2^8 of them: each merge doubles.
TEST(BytePairEncoder, MergesLongWordsInNoTime) {
  const TemporaryFolder folder;
  SmallVocabulary files;
  int number = 300;
  for (std::string token = "a"; token.size() < 256; token += token) {
    files.encoder[token + token] = number++;
    files.merges += token + " " + token + "\n";
  }
  BytePairEncoder encoder = encoder_of(files, folder);
  const Tokens tokens = encoder.encode(std::string(1U << 20U, 'a'));
  EXPECT_EQ(tokens, Tokens(1U << 12U, number - 1));
  EXPECT_EQ(encoder.encode(std::string(1U << 20U, ' ')), Tokens(1U << 20U, ' '));
}

TEST(BytePairEncoder, FindsWhatIsNoUtf8) {
  const TemporaryFolder folder;
  BytePairEncoder encoder = encoder_of({}, folder);
  EXPECT_EQ(encoder.first_broken("héllo"), std::nullopt);
  EXPECT_EQ(encoder.first_broken(""), std::nullopt);
  EXPECT_EQ(encoder.first_broken("abc\xFF"), 3U);
  EXPECT_EQ(encoder.first_broken("\xC0\x80"), 0U);
  EXPECT_EQ(encoder.first_broken("a\xED\xA0\x80"), 1U);  // half of a pair of UTF-16
  EXPECT_EQ(encoder.first_broken("ab\xE2\x82"), 2U);
}

// What tokenizers, which is GPT-2's encoding in transformers, makes of texts of many scripts.
TEST(BytePairEncoder, MakesTheTokensOfOthers) {
  std::ifstream file{std::string{SPILLWAY_GOLDEN_FILES} + "/texts.json"};
  const nlohmann::json golden = nlohmann::json::parse(file);
  SmallVocabulary files;
  files.encoder = golden.at("encoder");
  files.merges = "#version: 0.2\n";
  for (const std::string merge : golden.at("merges")) files.merges += merge + "\n";
  const TemporaryFolder folder;
  BytePairEncoder encoder = encoder_of(files, folder);
  for (const nlohmann::json& text : golden.at("cases")) {
    EXPECT_EQ(encoder.encode(text.at("text").get<std::string>()), text.at("tokens").get<Tokens>())
        << text;
  }
}

class EncodedFile : public testing::Test {
 protected:
  EncodedFile() { SmallVocabulary::write(folder_, "a.txt", "the theme"); }
  [[nodiscard]] std::string path() const { return folder_.file("a.txt"); }

  TemporaryFolder folder_;
  BytePairEncoder encoder_ = encoder_of({}, folder_);
};

TEST_F(EncodedFile, HoldsTheTokensOfItsText) {
  const auto text = encode_file(path(), encoder_);
  EXPECT_EQ(all_tokens(*text), (Tokens{257, ' ', 257, 'm', 'e'}));
  EXPECT_EQ(text->name(), "byte pairs of " + path());
}

TEST_F(EncodedFile, IsKnownByItsTextAndItsVocabulary) {
  const std::string content = encode_file(path(), encoder_)->content_sha256();
  EXPECT_EQ(encode_file(path(), encoder_)->content_sha256(), content);
  SmallVocabulary files;
  files.merges = "t h\n";
  BytePairEncoder other = encoder_of(files, folder_);
  EXPECT_NE(encode_file(path(), other)->content_sha256(), content);
  SmallVocabulary::write(folder_, "a.txt", "the theme.");
  EXPECT_NE(encode_file(path(), encoder_)->content_sha256(), content);
}

TEST_F(EncodedFile, ThatIsNoTextIsRefused) {
  SmallVocabulary::write(folder_, "a.txt", "the \xE2\x28");
  EXPECT_EQ(refusal([&] { return encode_file(path(), encoder_); }),
            path() + " is no UTF-8 at byte 4; convert it with iconv, or leave out --tokenizer");
  SmallVocabulary::write(folder_, "a.txt", "");
  EXPECT_EQ(refusal([&] { return encode_file(path(), encoder_); }),
            path() + " is empty; there is nothing to learn");
  EXPECT_EQ(refusal([&] { return encode_file(folder_.path(), encoder_); }),
            "cannot read " + folder_.path().string() + ": it is no ordinary file");
}

}  // namespace
}  // namespace spillway::test
