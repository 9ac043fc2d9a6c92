#include "src/io/text/token_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/refusal.h"
#include "tests/src/io/text/text_files.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using Tokens = std::vector<std::int32_t>;

class TokenFile : public testing::Test {
 protected:
  [[nodiscard]] std::string refusal_of(const Content& content) const {
    folder_.write("a.bin", content);
    return refusal([&] { return open_token_file(path()); });
  }
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

TEST_F(TokenFile, ThatIsMissingOrNoFileIsRefused) {
  EXPECT_EQ(refusal([&] { return open_token_file(path()); }),
            "cannot read " + path() + ": No such file or directory");
  EXPECT_EQ(refusal([&] { return open_token_file(folder_.path()); }),
            "cannot read " + folder_.path().string() + ": it is no ordinary file");
  EXPECT_EQ(refusal([&] { return open_bytes(folder_.path()); }),
            "cannot read " + folder_.path().string() + ": it is no ordinary file");
}

TEST_F(TokenFile, ThatIsEmptyIsRefused) {
  EXPECT_EQ(refusal_of({}), path() + " is empty; there is nothing to learn");
  EXPECT_EQ(refusal([&] { return open_bytes(path()); }),
            path() + " is empty; there is nothing to learn");
  EXPECT_EQ(refusal_of(token_file({})), path() + " holds no tokens; there is nothing to learn");
}

TEST_F(TokenFile, OfAnOddNumberOfBytesIsRefused) {
  for (const Content& content : {Content{5}, Content{1, 2, 3}}) {
    EXPECT_EQ(refusal_of(content),
              path() + " has " + std::to_string(content.size()) +
                  " bytes, an odd number, but each token has 2; it is no token file, or was cut "
                  "short");
  }
}

TEST_F(TokenFile, CutShortInItsHeaderIsRefused) {
  Content file = token_file({1, 2});
  for (const std::size_t size : {4U, 12U, 1023U}) {
    file.resize(size);
    EXPECT_EQ(refusal_of(Content(file.begin(), file.begin() + 4)),
              path() +
                  " has 4 bytes, but its header alone needs 1024; copy or download it "
                  "again");
  }
}

TEST_F(TokenFile, OfAnotherLengthThanItPromisesIsRefused) {
  Content file = token_file({1, 2, 3});
  set_number(file, 2, 4);
  EXPECT_EQ(refusal_of(file), path() +
                                  " has 6 bytes after its header, which promises 4 tokens of 2 "
                                  "bytes; copy or download it again");
  set_number(file, 2, 0xFFFFFFFF);
  EXPECT_NE(refusal_of(file).find("promises 4294967295 tokens"), std::string::npos);
  file = token_file({1, 2, 3});
  file.pop_back();
  EXPECT_NE(refusal_of(file).find("5 bytes after its header"), std::string::npos);
}

TEST_F(TokenFile, OfAnotherVersionIsRefused) {
  Content file = token_file({1, 2, 3});
  set_number(file, 1, 2);
  EXPECT_EQ(refusal_of(file), path() + " is a token file of version 2; only version 1 can be read");
}

TEST_F(TokenFile, OfAnotherFormatIsRefused) {
  Content file = token_file({1, 2, 3});
  set_number(file, 0, 20240801);
  EXPECT_EQ(refusal_of(file),
            path() + " holds tokens of 32 bits; only those of 16 bits can be read");
  set_number(file, 0, 0x88D83401);
  EXPECT_EQ(refusal_of(file),
            path() +
                " was written with the highest byte first; write it anew with the lowest byte "
                "first");
  EXPECT_EQ(refusal_of({0x1F, 0x8B, 8, 0}), path() + " is packed; unpack it with gunzip");
  EXPECT_EQ(refusal_of({0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0}),
            path() +
                " is a NumPy array with a header; write its uint16 numbers alone, with "
                "ndarray.tofile()");
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

}  // namespace
}  // namespace spillway::test
