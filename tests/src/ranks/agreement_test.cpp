#include "src/ranks/agreement.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "src/ranks/rank_names.h"
#include "tests/src/ranks/on_ranks.h"

namespace spillway {
namespace {

using namespace testing;

// The error on ranks 0 and 1 on node a and rank 2 on node b when rank 2 has other texts.
std::string sentence(const std::vector<NamedText>& texts, const std::vector<NamedText>& others) {
  ThreadRanks group{{"a", "a", "b"}};
  const auto errors = on_ranks(group, [&](Communicator& communicator) {
    expect_agreement(communicator, communicator.rank() == 2 ? others : texts);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3, errors[0]));  // the same on all ranks
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

using Ranks = std::vector<std::size_t>;

TEST(RankNames, GroupNeighboursOfANode) {
  const std::vector<std::string> nodes = {"a", "a", "a", "b", "b", "b"};
  EXPECT_EQ(rank_names(Ranks{1}, nodes), "rank 1 on a");
  EXPECT_EQ(rank_names(Ranks{0, 1}, nodes), "ranks 0 and 1 on a");
  EXPECT_EQ(rank_names(Ranks{1, 2, 3, 5}, nodes),
            "ranks 1 and 2 on a, rank 3 on b and rank 5 on b");
  EXPECT_EQ(rank_names(Ranks{0, 1, 2, 4}, nodes), "ranks 0 to 2 on a and rank 4 on b");
}

TEST(RankNames, StayShortWhereManyAreMeant) {
  Ranks odd;
  for (std::size_t rank = 1; rank < 100; rank += 2) odd.push_back(rank);
  const std::string names = rank_names(odd, std::vector<std::string>(100, "a"));
  EXPECT_EQ(names.find("rank 1 on a, rank 3 on a, "), 0U);
  EXPECT_NE(names.find("rank 15 on a and 42 more"), std::string::npos) << names;
}

TEST(RankNames, GoWithoutANodeBeforeItIsKnown) {
  EXPECT_EQ(rank_names(Ranks{1, 2}, std::vector<std::string>(3)), "ranks 1 and 2");
}

TEST(Silence, NamesAllThatAreSilent) {
  using namespace std::chrono_literals;
  const std::vector<std::string> nodes = {"a", "a", "b"};
  EXPECT_EQ(
      silence(Ranks{1, 2}, nodes, 1500ms),
      "nothing has come from rank 1 on a and rank 2 on b for 1.5 s: they hang, have ended, or "
      "cannot be reached");
}

}  // namespace
}  // namespace spillway
