#include "src/io/text/byte_pairs.h"

#include <gtest/gtest.h>

#include "tests/src/io/text/text_files.h"
#include "tests/temporary_folder.h"

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

}  // namespace
}  // namespace spillway::test
