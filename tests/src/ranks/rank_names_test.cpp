#include "src/ranks/rank_names.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace spillway {
namespace {

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
