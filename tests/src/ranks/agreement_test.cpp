#include "src/ranks/agreement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/src/ranks/on_ranks.h"

namespace spillway {
namespace {

using namespace testing;

// What ranks 0 and 1 on node a and rank 2 on node b say when rank 2 has other texts.
std::string sentence(const std::vector<NamedText>& texts, const std::vector<NamedText>& others) {
  ThreadRanks group{{"a", "a", "b"}};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    expect_agreement(communicator, communicator.rank() == 2 ? others : texts);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3, errors[0]));  // all of them the same
  return errors[0];
}

TEST(Agreement, SaysWhatDiffersAndWhere) {
  EXPECT_EQ(sentence({{"data", "x"}, {"threads", "1"}}, {{"data", "x"}, {"threads", "2"}}),
            "the ranks differ in threads: ranks 0 and 1 on a have '1', rank 2 on b has '2'");
}

TEST(Agreement, SaysAllThatDiffers) {
  EXPECT_EQ(
      sentence({{"data", "x"}, {"threads", "1"}}, {{"data", ""}, {"threads", "2"}}),
      "the ranks differ in data: ranks 0 and 1 on a have 'x', rank 2 on b has nothing; and in "
      "threads: ranks 0 and 1 on a have '1', rank 2 on b has '2'");
}

TEST(Agreement, ShowsLongTextsAroundTheFirstDifference) {
  const std::string begin(500, 'a');
  const std::string end(500, 'z');
  EXPECT_EQ(sentence({{"flags", begin + "1" + end}}, {{"flags", begin + "2" + end}}),
            "the ranks differ in flags: ranks 0 and 1 on a have '..." + std::string(24, 'a') + "1" +
                std::string(71, 'z') + "...', rank 2 on b has '..." + std::string(24, 'a') + "2" +
                std::string(71, 'z') + "...'");
}

TEST(Agreement, NeverCutsACharacter) {
  std::string begin;  // 100 characters of 2 bytes; the difference begins inside the last
  for (int i = 0; i < 99; ++i) begin += "\u00e4";
  const std::string text = sentence({{"path", begin + "\u00e4"}}, {{"path", begin + "\u00f6"}});
  EXPECT_NE(text.find("'...\u00e4"), std::string::npos) << text;
  EXPECT_NE(text.find("\u00e4\u00f6'"), std::string::npos) << text;
}

TEST(Agreement, ComparesNoTextsOfDifferentNames) {
  EXPECT_EQ(
      sentence({{"data", "x"}}, {{"flags", "x"}}),
      "the ranks differ in what they compare: ranks 0 and 1 on a have 'data', rank 2 on b has "
      "'flags'");
}

TEST(Agreement, TellsAFewTextsApart) {
  ThreadRanks group{6};
  const auto errors = on_ranks(group, [](Communicator& communicator) {
    const std::vector<NamedText> texts = {{"seed", std::to_string(communicator.rank())}};
    expect_agreement(communicator, texts);
  });
  EXPECT_NE(errors[0].find("has '3', and so on"), std::string::npos) << errors[0];
}

}  // namespace
}  // namespace spillway
