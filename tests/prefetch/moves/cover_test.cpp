#include "prefetch/moves/cover.h"

#include <gtest/gtest.h>

#include "tests/prefetch/toy_graph.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// a and b have two pages, c has three. Demand in pages, run by run:
//   make a: 2, make b: 4, make c: 7, use b: 4 (c is gone), use a: 2.
// Between two uses when c is made: a (used longest ago) and b.
class CoverTest : public ::testing::Test {
 protected:
  // "name offset+size for run", in pages; "none" when some run does not fit.
  [[nodiscard]] std::vector<std::string> away(um::Bytes pool, const CoverOptions& options) const {
    const BlockSizes block_sizes{graph, kPage};
    const std::vector<TaskRun> runs = runs_in_order(graph);
    const std::vector<Life> lives = find_lives(graph, runs);
    const auto far_intervals =
        cover(block_sizes, demand(graph, block_sizes, runs, lives), lives, pool, options);
    if (!far_intervals) return {"none"};
    std::vector<std::string> result;
    for (const FarInterval& far_interval : *far_intervals) {
      result.push_back(graph[far_interval.data].name + " " +
                       std::to_string(far_interval.offset / kPage) + "+" +
                       std::to_string(far_interval.size / kPage) + " for " +
                       std::to_string(far_interval.needed));
    }
    return result;
  }
  const TaskGraph graph =
      toy_graph("a:2 b:2 c:3", "a = make a(); b = make b(); c = make c(); use b(b); use a(a)");
};

using Away = std::vector<std::string>;

TEST_F(CoverTest, TakesNothingWhenEverythingFits) {
  EXPECT_EQ(away(pages(7), {.chunk = pages(4)}), Away{});
}

TEST_F(CoverTest, TakesWhatIsMissingFromTheBlockUsedLongestAgo) {
  EXPECT_EQ(away(pages(6), {.chunk = pages(4)}), Away{"a 0+1 for 2"});
  EXPECT_EQ(away(pages(4), {.chunk = pages(4)}), (Away{"a 0+2 for 2", "b 0+1 for 2"}));
}

TEST_F(CoverTest, TakesWholeBlocksWhenToldTo) {
  EXPECT_EQ(away(pages(6), {.chunk = pages(4), .whole_blocks = true}), Away{"a 0+2 for 2"});
  EXPECT_EQ(away(pages(4), {.chunk = pages(1), .whole_blocks = true}),
            (Away{"a 0+2 for 2", "b 0+2 for 2"}));
}

TEST_F(CoverTest, TakesNoMoreThanAChunkAtOnce) {
  EXPECT_EQ(away(pages(4), {.chunk = pages(1)}),
            (Away{"a 0+1 for 2", "a 1+1 for 2", "b 0+1 for 2"}));
}

// Two pages are to be free: of 7 when c is made, of 4 also when b is, where a is idle.
TEST_F(CoverTest, KeepsSpareRoomAsFarAsBlocksAreIdle) {
  EXPECT_EQ(away(pages(7), {.chunk = pages(4), .spare = pages(2)}), Away{"a 0+2 for 2"});
  EXPECT_EQ(away(pages(4), {.chunk = pages(4), .spare = pages(2)}),
            (Away{"a 0+2 for 1", "b 0+1 for 2", "b 1+1 for 2"}));
}

TEST_F(CoverTest, GivesNothingWhenATaskDoesNotFit) {
  // Three pages: one page of a must go for b already.
  EXPECT_EQ(away(pages(3), {.chunk = pages(4)}),
            (Away{"a 0+1 for 1", "a 1+1 for 2", "b 0+2 for 2"}));
  EXPECT_EQ(away(pages(2), {.chunk = pages(4)}), Away{"none"});
}

}  // namespace
}  // namespace spillway::prefetch
