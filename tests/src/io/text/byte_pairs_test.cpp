#include "src/io/text/byte_pairs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/refusal.h"
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

class Vocabulary : public testing::Test {
 protected:
  // The error for these files.
  [[nodiscard]] std::string refusal_of(const SmallVocabulary& files) const {
    files.write_to(folder_);
    return refused();
  }
  [[nodiscard]] std::string refused() const {
    return refusal([&] { return read_byte_pairs(folder_.path()); });
  }
  [[nodiscard]] std::string encoder() const { return folder_.file("encoder.json"); }
  [[nodiscard]] std::string merges() const { return folder_.file("vocab.bpe"); }

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

TEST_F(Vocabulary, WithoutItsFilesIsRefused) {
  const std::string sentence = "the folder " + folder_.path().string() +
                               " has no tokenizer: put encoder.json and vocab.bpe there, or "
                               "vocab.json and merges.txt";
  EXPECT_EQ(refused(), sentence);
  SmallVocabulary::write(folder_, "encoder.json", "{}");
  SmallVocabulary::write(folder_, "merges.txt", "t h");
  EXPECT_EQ(refused(), sentence);
}

TEST_F(Vocabulary, ThatIsAFolderIsRefused) {
  files_.write_to(folder_);
  std::filesystem::remove(encoder());
  std::filesystem::create_directory(encoder());
  EXPECT_EQ(refused(), "cannot read " + encoder() + ": it is no ordinary file");
}

TEST_F(Vocabulary, OfBrokenJsonIsRefused) {
  files_.write_to(folder_);
  const std::string whole = files_.encoder.dump();
  for (const std::string& text : {std::string{}, whole.substr(0, whole.size() / 2), whole + "}",
                                  std::string{"{\"a\": }"}, std::string{"{\"\xFF\": 1}"}}) {
    SmallVocabulary::write(folder_, "encoder.json", text);
    EXPECT_EQ(refused().find(encoder() + " is no JSON: "), 0U) << refused();
  }
}

TEST_F(Vocabulary, OfOtherJsonIsRefused) {
  for (const char* text : {"[]", "3", "null"}) {
    files_.encoder = nlohmann::json::parse(text);
    EXPECT_EQ(refusal_of(files_), encoder() + " is no JSON object of tokens and their numbers");
  }
}

TEST_F(Vocabulary, WithATokenTwiceIsRefused) {
  files_.write_to(folder_);
  SmallVocabulary::write(folder_, "encoder.json", R"({"a": 1, "b": 2, "a": 3})");
  EXPECT_EQ(refused(), encoder() + " has a token twice");
}

TEST_F(Vocabulary, WithANumberTwiceIsRefused) {
  files_.encoder["zz"] = 256;
  EXPECT_EQ(refusal_of(files_).find(encoder() + " gives the number 256 to several tokens"), 0U);
}

TEST_F(Vocabulary, OfWrongNumbersIsRefused) {
  for (const char* number : {"-1", "1.5", "\"7\"", "null", "16777216", "[1]"}) {
    files_.encoder["the"] = nlohmann::json::parse(number);
    EXPECT_EQ(refusal_of(files_), encoder() + " gives token 'the' the number " + number +
                                      "; it must be a whole number from 0 to 16777215");
  }
}

TEST_F(Vocabulary, WithoutATokenForAByteIsRefused) {
  files_.encoder.erase("Ġ");
  EXPECT_EQ(refusal_of(files_),
            encoder() +
                " has no token for byte 32, 'Ġ'; only encodings of bytes, as GPT-2's, can be read");
}

TEST_F(Vocabulary, WithLinesThatAreNoMergesIsRefused) {
  for (const char* line : {"t", "t h e", " h", "t ", "t  h"}) {
    files_.merges = std::string{"#version: 0.2\n"} + line + "\n";
    EXPECT_EQ(refusal_of(files_), merges() + ", line 2: '" + line +
                                      "' is no merge, which is two tokens and a space between");
  }
}

TEST_F(Vocabulary, OfAnotherVocabularysMergesIsRefused) {
  files_.merges = "t h\nth x\n";
  EXPECT_EQ(refusal_of(files_), merges() +
                                    ", line 2: the vocabulary has no token 'thx'; take both files "
                                    "from the same tokenizer");
  files_.encoder["qqth"] = 258;
  files_.merges = "t h\nqq th\n";
  EXPECT_NE(refusal_of(files_).find("line 2: the vocabulary has no token 'qq'"), std::string::npos);
}

TEST_F(Vocabulary, WithAMergeTwiceIsRefused) {
  files_.merges = "t h\nth e\nt h\n";
  EXPECT_EQ(refusal_of(files_),
            merges() + ", line 3: the tokens 't' and 'h' are merged a second time");
}

TEST_F(Vocabulary, WithoutMergesIsRefused) {
  for (const char* text : {"", "#version: 0.2\n", "\n\n"}) {
    files_.merges = text;
    EXPECT_EQ(refusal_of(files_), merges() + " has no merges; copy or download it again");
  }
}

}  // namespace
}  // namespace spillway::test
