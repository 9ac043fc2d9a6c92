#include <gtest/gtest.h>

#include "prefetch/planners/modnn/offload_scheme.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;

// Offsets and sizes in pages, and the block or -1.
std::vector<std::vector<int>> pages_of(const SegmentList& list) {
  std::vector<std::vector<int>> result;
  for (const Segment& segment : list.segments()) {
    result.push_back({static_cast<int>(segment.offset / kPage),
                      static_cast<int>(segment.size / kPage),
                      segment.block ? static_cast<int>(*segment.block) : -1});
  }
  return result;
}

TEST(SegmentList, ListsBlocksAndFreeRoomInAddressOrder) {
  SegmentList list{pages(10), kPage};
  EXPECT_EQ(pages_of(list), (std::vector<std::vector<int>>{{0, 10, -1}}));
  EXPECT_TRUE(list.allocate(DataId{7}, pages(3)));
  EXPECT_TRUE(list.allocate(DataId{8}, pages(2)));
  EXPECT_TRUE(list.allocate(DataId{9}, pages(4)));
  list.free(DataId{8});
  EXPECT_EQ(pages_of(list),
            (std::vector<std::vector<int>>{{0, 3, 7}, {3, 2, -1}, {5, 4, 9}, {9, 1, -1}}));
  EXPECT_TRUE(list.contains(DataId{9}));
  EXPECT_FALSE(list.contains(DataId{8}));
}

TEST(SegmentList, GivesTheSmallestRoomThatFitsAndNoneAcrossABlock) {
  SegmentList list{pages(10), kPage};
  EXPECT_TRUE(list.allocate(DataId{1}, pages(3)));
  EXPECT_TRUE(list.allocate(DataId{2}, pages(5)));
  list.free(DataId{1});  // three free pages, block 2, two free pages
  EXPECT_FALSE(list.allocate(DataId{3}, pages(4)));
  EXPECT_TRUE(list.allocate(DataId{4}, pages(2)));
  EXPECT_EQ(pages_of(list), (std::vector<std::vector<int>>{{0, 3, -1}, {3, 5, 2}, {8, 2, 4}}));
}

}  // namespace
}  // namespace spillway::prefetch
