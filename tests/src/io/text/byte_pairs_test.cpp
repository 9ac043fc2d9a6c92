#include "src/io/text/byte_pairs.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "src/io/data/open_dataset.h"
#include "src/io/text/byte_pair_encoder.h"
#include "src/io/text/text_codec.h"
#include "tests/refusal.h"
#include "tests/src/io/text/text_files.h"
#include "tests/temporary_folder.h"
#include "um/error.h"

namespace spillway::test {
namespace {

TEST(ByteCharacters, AreThoseOfGpt2) {
  const auto characters = byte_characters();
  EXPECT_EQ(characters[' '], "Ġ");
  EXPECT_EQ(characters['\n'], "Ċ");
  EXPECT_EQ(characters['a'], "a");
  EXPECT_EQ(characters[0], "Ā");
  EXPECT_EQ(characters[0xAD], "Ń");
  EXPECT_EQ(characters[0xFF], "ÿ");
}

// tests/src/cli/golden/refusals.txt has those that are refused.
class Vocabulary : public testing::Test {
 protected:
  TemporaryFolder folder_;
  SmallVocabulary files_;
};

TEST_F(Vocabulary, HasATokenForEachByteAndEachMerge) {
  files_.encoder["<|endoftext|>"] = 300;
  files_.write_to(folder_);
  const BytePairs pairs = read_byte_pairs(folder_.path());
  EXPECT_EQ(pairs.bytes[' '], 32);
  EXPECT_EQ(pairs.size, 301U);
  EXPECT_EQ(pairs.end_of_text, 300);
  ASSERT_EQ(pairs.merges.size(), 2U);
  EXPECT_EQ(pairs.merges.at(BytePairs::key('t', 'h')).token, 256);
  EXPECT_EQ(pairs.merges.at(BytePairs::key(256, 'e')).token, 257);
  EXPECT_EQ(pairs.merges.at(BytePairs::key(256, 'e')).rank, 1U);
}

TEST_F(Vocabulary, MayHaveItsOtherNamesAndOtherEndsOfLines) {
  SmallVocabulary::write(folder_, "vocab.json", files_.encoder.dump());
  SmallVocabulary::write(folder_, "merges.txt", "t h\r\n\r\nth e");
  EXPECT_EQ(read_byte_pairs(folder_.path()).merges.size(), 2U);
}

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

// Merges "a" up to 2^8 of them: each merge doubles the length.
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
  EXPECT_EQ(encoder.first_broken("a\xED\xA0\x80"), 1U);  // half of a UTF-16 surrogate pair
  EXPECT_EQ(encoder.first_broken("ab\xE2\x82"), 2U);
}

// Compares with the library tokenizers, GPT-2's encoding in transformers, on texts of many scripts.
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

constexpr int kCases = 300;

// Damaged text files: each can be opened and read to its end, or gives an error.
class SpoiltText : public testing::Test {
 protected:
  SpoiltText() {
    SmallVocabulary{}.write_to(folder_);
    SmallVocabulary::write(folder_, "a.txt", text());
  }

  static std::string text() {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the thé, " + std::to_string(i * 37) + " 日本\n";
    return text;
  }
  static Content bytes(const std::string& text) { return {text.begin(), text.end()}; }

  // Opens `spec` with many damaged versions of the file `name`, `good` when intact.
  void spoil(const std::string& name, const Content& good, const std::string& spec,
             const std::string& tokenizer) {
    int opened = 0;
    for (int i = 0; i < kCases; ++i) {
      folder_.write(name, spoilt(good));
      opened += opens(spec, tokenizer) ? 1 : 0;
    }
    folder_.write(name, good);
    EXPECT_TRUE(opens(spec, tokenizer));
    RecordProperty("opened", opened);
  }

  [[nodiscard]] bool opens(const std::string& spec, const std::string& tokenizer) const {
    try {
      const DatasetPair data = open_dataset(spec, {.image = nets::tokens(8),
                                                   .classes = 300,
                                                   .labels = {8, 1},
                                                   .objective = Objective::kMaskedTokens,
                                                   .tokenizer = tokenizer});
      for (const Dataset* set : {data.train.get(), data.test.get()}) read_all(*set);
      return true;
    } catch (const um::Error& error) {
      EXPECT_EQ(std::string{error.what()}.find('\n'), std::string::npos);
      return false;
    }
  }

 private:
  // Changes, removes or inserts some bytes, or cuts the end off.
  Content spoilt(Content content) {
    for (unsigned changes = 1 + random_() % 4; changes > 0 && !content.empty(); --changes) {
      const std::size_t place = random_() % content.size();
      switch (random_() % 5) {
        case 0:
          content[place] ^= static_cast<std::uint8_t>(1U << (random_() % 8));
          break;
        case 1:
          content[place] = any_byte();
          break;
        case 2:
          content.erase(content.begin() + static_cast<std::ptrdiff_t>(place));
          break;
        case 3:
          content.insert(content.begin() + static_cast<std::ptrdiff_t>(place), any_byte());
          break;
        default:
          content.resize(place);
      }
    }
    return content;
  }

  std::uint8_t any_byte() { return static_cast<std::uint8_t>(random_() % 256); }

  static void read_all(const Dataset& set) {
    std::vector<float> image(8);
    std::vector<std::int32_t> labels(8);
    for (std::size_t i = 0; i < set.size(); ++i) {
      set.read(i, image);
      set.labels(i, labels);
      for (const float token : image) EXPECT_TRUE(token >= 0 && token < 300) << token;
    }
  }

 protected:
  TemporaryFolder folder_;
  std::mt19937 random_{5};  // NOLINT(cert-msc51-cpp): the same each time
};

TEST_F(SpoiltText, OfBytesHarmsNobody) {
  spoil("a.txt", bytes(text()), "text:" + folder_.file("a.txt"), "");
}

TEST_F(SpoiltText, OfBytePairsHarmsNobody) {
  spoil("a.txt", bytes(text()), "text:" + folder_.file("a.txt"), folder_.path());
}

TEST_F(SpoiltText, WithASpoiltVocabularyHarmsNobody) {
  const std::string spec = "text:" + folder_.file("a.txt");
  spoil("encoder.json", bytes(SmallVocabulary{}.encoder.dump()), spec, folder_.path());
  spoil("vocab.bpe", bytes(SmallVocabulary{}.merges), spec, folder_.path());
}

TEST_F(SpoiltText, OfTokensHarmsNobody) {
  std::vector<std::uint16_t> numbers;
  for (std::uint16_t i = 0; i < 50; ++i) numbers.push_back(i * 5);
  const std::string spec = "tokens:" + folder_.file("a.bin");
  spoil("a.bin", token_file(numbers), spec, "");
  spoil("a.bin", raw_tokens(numbers), spec, "");
}

// Headers with damaged leading numbers, which random changes seldom hit.
TEST_F(SpoiltText, WithASpoiltHeaderHarmsNobody) {
  const std::vector<std::uint16_t> numbers(50, 7);
  for (int i = 0; i < kCases; ++i) {
    Content file = token_file(numbers);
    file[random_() % 12] = static_cast<std::uint8_t>(random_() % 256);
    file.resize(random_() % 3 == 0 ? random_() % file.size() : file.size());
    folder_.write("a.bin", file);
    static_cast<void>(opens("tokens:" + folder_.file("a.bin"), ""));
  }
}

std::string decoded(const TextCodec& codec, const Tokens& tokens) {
  std::string text;
  for (const std::int32_t token : tokens) text += codec.text(token);
  return text;
}

std::unique_ptr<TextCodec> codec_of(const SmallVocabulary& files) {
  const TemporaryFolder folder;
  files.write_to(folder);
  return make_byte_pair_codec(read_byte_pairs(folder.path()));
}

TEST(TextCodec, GivesEveryByteBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::unique_ptr<TextCodec> codec = make_byte_codec();
  EXPECT_EQ(codec->size(), 256U);
  const Tokens tokens = codec->encode(all);
  EXPECT_EQ(tokens.back(), 255);
  EXPECT_EQ(decoded(*codec, tokens), all);
  EXPECT_EQ(codec->beginning(), '\n');
}

TEST(TextCodec, GivesTheTextOfBytePairsBack) {
  const std::unique_ptr<TextCodec> codec = codec_of({});
  EXPECT_EQ(codec->size(), 258U);
  for (const std::string text : {"the \t\n thé — \x7f", "\xC2\xA0\xC2\xAD", "日本"}) {
    EXPECT_EQ(decoded(*codec, codec->encode(text)), text);
  }
  EXPECT_EQ(codec->text(257), "the");
  EXPECT_EQ(codec->text(0xE6), "\xE6") << "part of a character";
}

TEST(TextCodec, BeginsBehindTheEndOfATextWhereThereIsSuch) {
  EXPECT_EQ(codec_of({})->beginning(), '\n');
  SmallVocabulary files;
  files.encoder["<|endoftext|>"] = 300;
  const std::unique_ptr<TextCodec> codec = codec_of(files);
  EXPECT_EQ(codec->beginning(), 300);
  EXPECT_EQ(codec->text(300), "<|endoftext|>");
  EXPECT_EQ(codec->text(299), "") << "none has this number";
}

TEST(TextCodec, RefusesWhatIsNoUtf8) {
  const std::unique_ptr<TextCodec> codec = codec_of({});
  EXPECT_EQ(refusal([&] { return codec->encode("th\xC3"); }), "the text is no UTF-8 at byte 2");
}

}  // namespace
}  // namespace spillway::test
