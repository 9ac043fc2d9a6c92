#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/sleeping_threads.h"
#include "tests/um/cuda/managed/small_space.h"
#include "um/cuda/managed/cuda_managed_space.h"
#include "um/error.h"

// The life of pages with dead content, and the waits for them.

namespace spillway::um {
namespace {

constexpr std::size_t kPage = 4096;

// Six pages with room for four near.
class NearPagesTest : public ::testing::Test {
 protected:
  explicit NearPagesTest(DeadContent dead = DeadContent::kStaysUntilOverwritten)
      : pages{slab, Bytes{kPage}, ledger, near, dead} {}

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

  // Drops pages at the end of a life.
  [[nodiscard]] std::vector<Range> dropped(Range range) {
    pages.end_life(range);
    std::vector<Range> all = pages.drop(range);
    pages.end_drop(all);
    return all;
  }

  std::vector<std::byte> slab = std::vector<std::byte>(6 * kPage);
  Ledger ledger{Bytes{4 * kPage}};
  Ledger near{Bytes{6 * kPage}};
  SlabPages pages;
};

TEST_F(NearPagesTest, BringsOnlyWhatIsAwayInAsFewRangesAsCanBe) {
  EXPECT_EQ(text(pages.bring(at(2, 1)).away), "2+1");
  EXPECT_EQ(text(pages.bring(at(0, 4)).away), "0+2 3+1");
  EXPECT_EQ(text(pages.bring(at(0, 4)).away), "");
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
  pages.send_away(at(1, 5));  // pages 4 and 5 were not near
  EXPECT_EQ(charged(), 1U);
  EXPECT_EQ(text(pages.bring(at(0, 4)).away), "1+3");
}

TEST_F(NearPagesTest, CountsTheLiveBytesOfARange) {
  static_cast<void>(pages.bring(at(1, 2)));
  EXPECT_EQ(pages.live_bytes(slab), Bytes{2 * kPage});
  // One byte of page 0, all of page 1, and ten bytes of page 2.
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
  EXPECT_EQ(text(pages.bring(at(4, 2)).away), "4+2");  // the two discarded pages
  EXPECT_EQ(text(dropped(at(0, 2))), "0+2");
  EXPECT_EQ(charged(), 4U);
}

// A page that a later launch overwrites is near already and must not be dropped.
TEST_F(NearPagesTest, KeepsAPageThatLivesAgain) {
  static_cast<void>(pages.bring(at(0, 2)));
  pages.retire(at(0, 2));
  EXPECT_EQ(text(pages.bring(at(1, 1)).away), "");
  EXPECT_EQ(charged(), 1U);
  EXPECT_EQ(text(dropped(at(0, 2))), "0+1");
  EXPECT_EQ(charged(), 1U);
}

TEST_F(NearPagesTest, DropsAPageOfTwoLivesAfterTheSecond) {
  static_cast<void>(pages.bring(at(0, 1)));
  pages.retire(at(0, 1));
  static_cast<void>(pages.bring(at(0, 1)));
  pages.retire(at(0, 1));
  EXPECT_EQ(text(dropped(at(0, 1))), "");  // the second life has not ended
  EXPECT_EQ(text(dropped(at(0, 1))), "0+1");
  EXPECT_EQ(charged(), 0U);
}

TEST_F(NearPagesTest, LeavesDeadPagesNearUntilTheyAreDropped) {
  static_cast<void>(pages.bring(at(0, 2)));
  pages.end_life(at(0, 2));
  EXPECT_EQ(charged(), 0U);
  EXPECT_EQ(text(pages.bring(at(0, 2)).away), "");
  EXPECT_EQ(charged(), 2U);
}

TEST_F(NearPagesTest, DropsNothingThatLivesAgainBeforeItIsDropped) {
  static_cast<void>(pages.bring(at(0, 2)));
  pages.end_life(at(0, 2));
  static_cast<void>(pages.bring(at(0, 1)));
  EXPECT_EQ(text(pages.drop(at(0, 2))), "1+1");
  EXPECT_EQ(charged(), 1U);
}

TEST_F(NearPagesTest, TakesBackWhatItHasBrought) {
  static_cast<void>(pages.bring(at(0, 2)));
  pages.retire(at(1, 1));
  pages.take_back(pages.bring(at(0, 4)));
  EXPECT_EQ(charged(), 1U);
  EXPECT_EQ(near.in_use(), Bytes{2 * kPage});  // with the retired page
  EXPECT_EQ(text(pages.bring(at(0, 4)).away), "2+2");
}

// Pages that a driver drops when it is told to.
class DroppedPagesTest : public NearPagesTest {
 protected:
  DroppedPagesTest() : NearPagesTest{DeadContent::kIsDropped} {}
};

TEST_F(DroppedPagesTest, AreChargedUntilTheDriverHasDroppedThem) {
  static_cast<void>(pages.bring(at(0, 4)));
  pages.retire(at(0, 2));
  EXPECT_EQ(charged(), 4U);
  EXPECT_EQ(pages.dead(), Bytes{2 * kPage});
  EXPECT_THROW(static_cast<void>(pages.bring(at(4, 2))), OutOfMemory);
  pages.end_life(at(0, 2));
  const std::vector<Range> dropping = pages.drop(at(0, 2));
  EXPECT_EQ(charged(), 4U);
  EXPECT_TRUE(pages.is_dropping(at(1, 3)));
  EXPECT_FALSE(pages.is_dropping(at(2, 4)));
  pages.end_drop(dropping);
  EXPECT_EQ(charged(), 2U);
  EXPECT_EQ(near.in_use(), Bytes{2 * kPage});
  EXPECT_EQ(pages.dead(), Bytes{});
  EXPECT_EQ(text(pages.bring(at(4, 2)).away), "4+2");
}

TEST_F(DroppedPagesTest, LiveAgainAtNoCost) {
  static_cast<void>(pages.bring(at(0, 4)));
  pages.retire(at(0, 4));
  EXPECT_EQ(pages.cost(at(0, 5)), Bytes{kPage});
  EXPECT_EQ(text(pages.bring(at(0, 4)).retired), "0+4");
  EXPECT_EQ(charged(), 4U);
  EXPECT_EQ(pages.dead(), Bytes{});
  EXPECT_EQ(text(dropped(at(0, 4))), "");
  EXPECT_EQ(charged(), 4U);
}

TEST_F(DroppedPagesTest, AreRetiredAgainWhenTheyAreTakenBack) {
  static_cast<void>(pages.bring(at(0, 2)));
  pages.retire(at(0, 2));
  pages.take_back(pages.bring(at(0, 3)));
  EXPECT_EQ(charged(), 2U);
  EXPECT_EQ(text(dropped(at(0, 3))), "0+2");
  EXPECT_EQ(charged(), 0U);
}

TEST_F(NearPagesTest, RefusesWhatIsNotWholePagesOfTheSlab) {
  EXPECT_THROW(static_cast<void>(pages.bring(Range{slab}.subspan(1, kPage))), ContractError);
  EXPECT_THROW(static_cast<void>(pages.bring(at(0, 1).first(kPage / 2))), ContractError);
  std::vector<std::byte> elsewhere(kPage);
  EXPECT_THROW(pages.retire(elsewhere), ContractError);
}

TEST(SlabPages, GivesBackItsChargeAtItsEnd) {
  std::vector<std::byte> slab(2 * kPage);
  for (const auto dead : {DeadContent::kIsDropped, DeadContent::kStaysUntilOverwritten}) {
    Ledger ledger{Bytes{2 * kPage}};
    Ledger near{Bytes{2 * kPage}};
    {
      SlabPages pages{slab, Bytes{kPage}, ledger, near, dead};
      static_cast<void>(pages.bring(slab));
      pages.retire(Range{slab}.first(kPage));
    }
    EXPECT_EQ(ledger.in_use(), Bytes{});
    EXPECT_EQ(near.in_use(), Bytes{});
  }
}

using Log = std::vector<std::string>;
using DeadPages = SmallSpace;

TEST_F(DeadPages, AreDiscardedOnTheStreamThatPopulates) {
  make(discarding());
  space->hints().populate(pages(0, 3));
  static_cast<void>(api->take_log());
  space->hints().retire(pages(0, 2));
  EXPECT_EQ(api->take_log(), Log{});
  EXPECT_EQ(ledger.in_use(), 6_MiB);
  space->hints().discard(pages(0, 2));
  space->hints().check();  // waits for the driver
  EXPECT_EQ(api->take_log(), (Log{"um upkeep: discard slab 0+2", "um upkeep: record"}));
  EXPECT_EQ(ledger.in_use(), 2_MiB);
  EXPECT_EQ(space->counters().discarded_pages, 2U);
}

// Checks the driver calls for a page with dead content, and for populating it again.
TEST_F(DeadPages, AreToldToTheDriverOnlyWhereItMayEvictOrWhenAskedTo) {
  const auto calls = [this](const GpuOptions& gpu) {
    ManagedOptions wanted = options();
    wanted.gpu = gpu;
    make(wanted);
    space->hints().populate(pages(0, 3));
    static_cast<void>(api->take_log());
    space->hints().discard(pages(0, 3));
    space->hints().check();
    EXPECT_EQ(ledger.in_use(), 0_MiB);
    space->hints().populate(pages(0, 3));
    Log log = api->take_log();
    space.reset();
    return log;
  };
  const Log told{"um upkeep: discard slab 0+3", "um upkeep: record",
                 "um upkeep: discard and prefetch near slab 0+3", "um upkeep: record",
                 "compute: wait for um upkeep"};
  EXPECT_EQ(calls({}), Log{});
  EXPECT_EQ(calls({.oversubscribe = true}), told);
  EXPECT_EQ(calls({.discards = true}), told);
  EXPECT_EQ(calls({.oversubscribe = true, .discards = false}), Log{});
}

// A driver with slow discards.
class SlowDiscards final : public RecordingApi {
 public:
  void discard(std::span<const Range> ranges, cudaStream_t stream) override {
    note("discard begins");
    may_end_.get_future().wait();
    RecordingApi::discard(ranges, stream);
  }
  void let_end() { may_end_.set_value(); }

 private:
  std::promise<void> may_end_;
};

TEST_F(DeadPages, AloneWaitForTheDriversDiscard) {
  SlowDiscards own;
  CudaManagedMemory from{own, std::nullopt};
  ComputeStreams none{own};
  CudaManagedSpace made{own, from, none, nullptr, discarding(), ledger};
  const auto page = [&](std::size_t index) {
    return made.slab().subspan(index * (2_MiB).count(), (2_MiB).count());
  };
  Hints& hints = made.hints();
  hints.populate(page(0));
  hints.discard(page(0));  // returns
  own.wait_until_noted("discard begins");
  static_cast<void>(own.take_log());
  hints.populate(page(1));
  EXPECT_EQ(own.take_log(),
            (Log{"um upkeep: discard and prefetch near slab 1+1", "um upkeep: record"}));
  std::thread again{[&] { hints.populate(page(0)); }};
  while (!test::all_others_sleep()) std::this_thread::yield();
  own.let_end();
  again.join();
  EXPECT_EQ(own.take_log(),
            (Log{"um upkeep: discard slab 0+1", "um upkeep: record",
                 "um upkeep: discard and prefetch near slab 0+1", "um upkeep: record"}));
}

TEST_F(DeadPages, AreDroppedBeforeTheirSpaceEnds) {
  SlowDiscards own;
  CudaManagedMemory from{own, std::nullopt};
  ComputeStreams none{own};
  std::optional<CudaManagedSpace> made;
  made.emplace(own, from, none, nullptr, discarding(), ledger);
  const Range page = made->slab().first((2_MiB).count());
  made->hints().populate(page);
  made->hints().discard(page);
  own.wait_until_noted("discard begins");
  std::thread end{[&] { made.reset(); }};
  while (!test::all_others_sleep()) std::this_thread::yield();
  own.let_end();
  end.join();
  EXPECT_EQ(own.take_log().back(), "um upkeep: record");
}

// The near memory of four pages is 6 MiB. Three pages are near and the first one is dead, so the
// last one has room when the driver has dropped that one.
class RoomOfDeadPages : public DeadPages {
 protected:
  void SetUp() override {
    make(discarding());
    space->hints().populate(pages(0, 3));
    use(0, 1);
    space->hints().retire(pages(0, 1));
    static_cast<void>(api->take_log());
    api->hold();
  }
  static void wait_until_all_others_sleep() {
    while (!test::all_others_sleep()) std::this_thread::yield();
  }
  // Lets the driver drop the page. Expects that nothing uses its room before.
  void drop() {
    wait_until_all_others_sleep();
    EXPECT_EQ(api->take_log(), Log{});
    space->hints().discard(pages(0, 1));
    api->wait_until_noted("um upkeep: discard slab 0+1");
    wait_until_all_others_sleep();
    EXPECT_EQ(api->take_log(), (Log{"um upkeep: discard slab 0+1", "um upkeep: record"}));
    EXPECT_EQ(ledger.in_use(), 6_MiB);
    api->finish("um upkeep");
  }
};

TEST_F(RoomOfDeadPages, IsForPagesToOverwriteWhenTheyAreDropped) {
  std::thread populating{[&] { space->hints().populate(pages(3, 1)); }};
  drop();
  populating.join();
  EXPECT_EQ(api->take_log(), (Log{"um upkeep: discard and prefetch near slab 3+1",
                                  "um upkeep: record", "compute: wait for um upkeep"}));
  EXPECT_EQ(ledger.in_use(), 6_MiB);
}

TEST_F(RoomOfDeadPages, IsForAPrefetchWhenTheyAreDropped) {
  std::promise<std::exception_ptr> ended;
  space->hints().prefetch(pages(3, 1), MemoryTier::kNear, [&](std::exception_ptr failure) {
    ended.set_value(std::move(failure));
  });  // returns
  drop();
  api->finish("um in");
  EXPECT_EQ(ended.get_future().get(), nullptr);
  EXPECT_EQ(api->take_log(), (Log{"um in: prefetch near slab 3+1", "um in: record"}));
  EXPECT_EQ(ledger.in_use(), 6_MiB);
  EXPECT_EQ(space->counters().bytes_prefetched, 2_MiB);
}

// Five pages: two are away, and only one of them has room when a page is dropped.
TEST_F(DeadPages, HaveTheirRoomPromisedOnce) {
  ManagedOptions wanted = discarding();
  wanted.size = 10_MiB;
  make(wanted);
  space->hints().populate(pages(0, 3));
  use(0, 2);
  api->hold();
  const auto replace = [&](Range dead, Range by, Range other, const std::string& lane) {
    space->hints().retire(dead);
    std::promise<std::exception_ptr> ended;
    space->hints().prefetch(by, MemoryTier::kNear, [&](std::exception_ptr failure) {
      ended.set_value(std::move(failure));
    });
    EXPECT_THROW(space->hints().populate(other), OutOfMemory);
    EXPECT_THROW(space->hints().prefetch(other, MemoryTier::kNear, {}), OutOfMemory);
    space->hints().discard(dead);
    api->finish("um upkeep");
    api->finish(lane);
    EXPECT_EQ(ended.get_future().get(), nullptr);
  };
  replace(pages(0, 1), pages(3, 1), pages(4, 1), "um in");
  replace(pages(1, 1), pages(4, 1), pages(0, 1), "um in 2");
}

TEST_F(RoomOfDeadPages, IsNotWaitedForAfterAFailure) {
  std::thread failing{[&] { EXPECT_THROW(space->hints().populate(pages(3, 1)), CudaError); }};
  wait_until_all_others_sleep();
  api->fail("um out: prefetch", cudaErrorInvalidValue);
  std::promise<void> ended;
  space->hints().prefetch(pages(1, 1), MemoryTier::kFar,
                          [&](const std::exception_ptr&) { ended.set_value(); });
  ended.get_future().wait();
  failing.join();
}

}  // namespace
}  // namespace spillway::um
