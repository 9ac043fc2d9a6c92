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

}  // namespace
}  // namespace spillway::test
