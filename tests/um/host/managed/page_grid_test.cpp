#include <gtest/gtest.h>

#include <vector>

#include "um/error.h"
#include "um/host/managed/page.h"
#include "um/host/managed/page_table.h"

namespace spillway::um {
namespace {

/// Four pages of 4096 bytes.
class PageGridTest : public testing::Test {
 protected:
  [[nodiscard]] Range range(std::size_t begin, std::size_t end) {
    return Range{memory}.subspan(begin, end - begin);
  }
  static void expect_span(PageSpan span, PageIndex begin, PageIndex end) {
    EXPECT_EQ(span.begin, begin);
    EXPECT_EQ(span.end, end);
  }

  std::vector<std::byte> memory = std::vector<std::byte>(16'384);
  PageGrid grid{memory, 4_KiB};
};

TEST_F(PageGridTest, TouchesEveryPageOfWhichARangeHasAByte) {
  expect_span(grid.touched(range(0, 4096)), 0, 1);
  expect_span(grid.touched(range(4095, 4097)), 0, 2);
  expect_span(grid.touched(range(5000, 5001)), 1, 2);
  expect_span(grid.touched(range(0, 16'384)), 0, 4);
}

TEST_F(PageGridTest, CoversOnlyWholePages) {
  expect_span(grid.covered(range(4096, 8192)), 1, 2);
  expect_span(grid.covered(range(1, 12'287)), 1, 2);
  const PageSpan none = grid.covered(range(5000, 5001));
  EXPECT_EQ(none.begin, none.end);
}

TEST_F(PageGridTest, HasNoPagesForNoBytes) {
  expect_span(grid.touched({}), 0, 0);
  expect_span(grid.whole({}), 0, 0);
}

TEST_F(PageGridTest, RefusesPartsOfPagesAndForeignAddresses) {
  EXPECT_THROW(static_cast<void>(grid.whole(range(0, 5000))), ContractError);
  EXPECT_THROW(static_cast<void>(grid.whole(range(1, 4096))), ContractError);
  std::vector<std::byte> foreign(4096);
  EXPECT_THROW(static_cast<void>(grid.touched(foreign)), ContractError);
}

TEST_F(PageGridTest, OnlyAWholePageIsOverwritten) {
  const Use use{.range = range(0, 6000), .access = Access::kWrite};
  EXPECT_TRUE(PageAccess::of(use, grid, 0).overwrites);
  EXPECT_TRUE(PageAccess::of(use, grid, 1).writes);
  EXPECT_FALSE(PageAccess::of(use, grid, 1).overwrites);
}

}  // namespace
}  // namespace spillway::um
