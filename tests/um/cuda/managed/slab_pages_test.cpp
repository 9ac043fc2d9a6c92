#include "um/cuda/managed/slab_pages.h"

#include <gtest/gtest.h>

#include "um/error.h"

namespace spillway::um {
namespace {

constexpr std::size_t kPage = 4096;

// Six pages, of which four may be near.
class NearPagesTest : public ::testing::Test {
 protected:
  [[nodiscard]] Range at(std::size_t first, std::size_t count) {
    return Range{slab}.subspan(first * kPage, count * kPage);
  }
  [[nodiscard]] std::uint64_t charged() const { return ledger.in_use() / Bytes{kPage}; }
  // "1+2 5+1"
  [[nodiscard]] std::string text(const std::vector<Range>& ranges) {
    std::string all;
    for (const Range& range : ranges) {
      all += (all.empty() ? "" : " ") +
             std::to_string(static_cast<std::size_t>(range.data() - slab.data()) / kPage) + "+" +
             std::to_string(range.size() / kPage);
    }
    return all;
  }

  // At the end of a life.
  [[nodiscard]] std::vector<Range> dropped(Range range) {
    pages.end_life(range);
    return pages.drop(range);
  }

  std::vector<std::byte> slab = std::vector<std::byte>(6 * kPage);
  Ledger ledger{Bytes{4 * kPage}};
  SlabPages pages{slab, Bytes{kPage}, ledger};
};

TEST_F(NearPagesTest, BringsOnlyWhatIsAwayInAsFewRangesAsCanBe) {
  EXPECT_EQ(text(pages.bring(at(2, 1))), "2+1");
  EXPECT_EQ(text(pages.bring(at(0, 4))), "0+2 3+1");
  EXPECT_EQ(text(pages.bring(at(0, 4))), "");
  EXPECT_EQ(charged(), 4U);
}

TEST_F(NearPagesTest, ChargesNothingWhenThereIsNoRoom) {
  static_cast<void>(pages.bring(at(0, 3)));
  EXPECT_THROW(static_cast<void>(pages.bring(at(3, 2))), OutOfMemory);
  EXPECT_EQ(charged(), 3U);
  EXPECT_EQ(pages.away(at(0, 6)), 3U);
}

TEST_F(NearPagesTest, ReleasesWhatWentFar) {
  static_cast<void>(pages.bring(at(0, 4)));
  pages.send_away(at(1, 5));  // of which 4 and 5 were not near
  EXPECT_EQ(charged(), 1U);
  EXPECT_EQ(text(pages.bring(at(0, 4))), "1+3");
}

TEST_F(NearPagesTest, CountsTheLiveBytesOfARange) {
  static_cast<void>(pages.bring(at(1, 2)));
  EXPECT_EQ(pages.live_bytes(slab), Bytes{2 * kPage});
  // The last byte of page 0, all of page 1, and ten bytes of page 2.
  EXPECT_EQ(pages.live_bytes(Range{slab}.subspan(kPage - 1, 1 + kPage + 10)), Bytes{kPage + 10});
  EXPECT_EQ(pages.live_bytes(Range{slab}.subspan(kPage + 5, 7)), 7_B);
  EXPECT_EQ(pages.live_bytes({}), 0_B);
  pages.retire(at(1, 1));  // retired
  EXPECT_EQ(pages.live_bytes(slab), Bytes{kPage});
}

TEST_F(NearPagesTest, DropsWhatIsDiscarded) {
  static_cast<void>(pages.bring(at(0, 3)));
  EXPECT_EQ(text(dropped(at(1, 3))), "1+2");
  EXPECT_EQ(charged(), 1U);
  EXPECT_EQ(pages.away(at(0, 3)), 2U);
}

TEST_F(NearPagesTest, GivesTheRoomOfRetiredPagesBackBeforeTheyAreDropped) {
  static_cast<void>(pages.bring(at(0, 4)));
  pages.retire(at(0, 2));
  EXPECT_EQ(charged(), 2U);
  EXPECT_EQ(text(pages.bring(at(4, 2))), "4+2");  // the two that died
  EXPECT_EQ(text(dropped(at(0, 2))), "0+2");
  EXPECT_EQ(charged(), 4U);
}

// A page that a launch made later overwrites is near already, and must not be dropped under it.
TEST_F(NearPagesTest, KeepsAPageThatLivesAgain) {
  static_cast<void>(pages.bring(at(0, 2)));
  pages.retire(at(0, 2));
  EXPECT_EQ(text(pages.bring(at(1, 1))), "");
  EXPECT_EQ(charged(), 1U);
  EXPECT_EQ(text(dropped(at(0, 2))), "0+1");
  EXPECT_EQ(charged(), 1U);
}

TEST_F(NearPagesTest, DropsAPageOfTwoLivesAfterTheSecond) {
  static_cast<void>(pages.bring(at(0, 1)));
  pages.retire(at(0, 1));
  static_cast<void>(pages.bring(at(0, 1)));
  pages.retire(at(0, 1));
  EXPECT_EQ(text(dropped(at(0, 1))), "");  // the second is still under way
  EXPECT_EQ(text(dropped(at(0, 1))), "0+1");
  EXPECT_EQ(charged(), 0U);
}

TEST_F(NearPagesTest, LeavesDeadPagesNearUntilTheyAreDropped) {
  static_cast<void>(pages.bring(at(0, 2)));
  pages.end_life(at(0, 2));
  EXPECT_EQ(charged(), 0U);
  EXPECT_EQ(text(pages.bring(at(0, 2))), "");
  EXPECT_EQ(charged(), 2U);
}

TEST_F(NearPagesTest, DropsNothingThatLivesAgainBeforeItIsDropped) {
  static_cast<void>(pages.bring(at(0, 2)));
  pages.end_life(at(0, 2));
  static_cast<void>(pages.bring(at(0, 1)));
  EXPECT_EQ(text(pages.drop(at(0, 2))), "1+1");
  EXPECT_EQ(charged(), 1U);
}

TEST_F(NearPagesTest, RefusesWhatIsNotWholePagesOfTheSlab) {
  EXPECT_THROW(static_cast<void>(pages.bring(Range{slab}.subspan(1, kPage))), ContractError);
  EXPECT_THROW(static_cast<void>(pages.bring(at(0, 1).first(kPage / 2))), ContractError);
  std::vector<std::byte> elsewhere(kPage);
  EXPECT_THROW(pages.retire(elsewhere), ContractError);
}

TEST(SlabPages, GivesBackItsChargeAtItsEnd) {
  std::vector<std::byte> slab(2 * kPage);
  Ledger ledger{Bytes{2 * kPage}};
  {
    SlabPages pages{slab, Bytes{kPage}, ledger};
    static_cast<void>(pages.bring(slab));
  }
  EXPECT_EQ(ledger.in_use(), Bytes{});
}

}  // namespace
}  // namespace spillway::um
