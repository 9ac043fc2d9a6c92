#include "src/io/text/text_codec.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/refusal.h"
#include "tests/src/data/text/small_vocabulary.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using Tokens = std::vector<std::int32_t>;

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
