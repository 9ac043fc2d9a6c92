#include "um/cuda/managed/cuda_managed_space.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/refusal.h"
#include "tests/sleeping_threads.h"
#include "tests/um/cuda/managed/small_space.h"
#include "um/cuda/managed/cuda_managed_memory.h"
#include "um/error.h"

namespace spillway::um {
namespace {

using Log = std::vector<std::string>;
using CudaManagedSpaceTest = SmallSpace;

template <class Action>
void expect_refused(const Action& action, const std::string& part) {
  const std::string sentence = test::refusal(action);
  EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
}

TEST_F(CudaManagedSpaceTest, AdvisesItsSlabOnceAndGivesEverythingBack) {
  RecordingApi own;
  {
    CudaManagedMemory from{own, std::nullopt};
    ComputeStreams none{own};
    CudaManagedSpace made{own, from, none, nullptr, options(), ledger};
    EXPECT_EQ(own.take_log(), (Log{"allocate slab 8.00 MiB", "advise slab 0+4 near"}));
  }
  EXPECT_EQ(own.live_objects(), 0U);
}

TEST_F(CudaManagedSpaceTest, PopulatesBesideTheComputeStreamWhichWaits) {
  make(options());
  api->hold();
  space->hints().populate(pages(1, 2));  // returns although nothing has fired
  EXPECT_EQ(api->take_log(), (Log{"um upkeep: discard and prefetch near slab 1+2",
                                  "um upkeep: record", "compute: wait for um upkeep"}));
  EXPECT_EQ(ledger.in_use(), 4_MiB);
  space->hints().populate(pages(1, 2));
  EXPECT_EQ(api->take_log(), Log{});  // it is near
}

TEST_F(CudaManagedSpaceTest, TellsHowManyBytesTheHintsLeftNear) {
  make(options());
  space->hints().populate(pages(1, 2));
  EXPECT_EQ(space->near_bytes(space->slab()), 4_MiB);
  EXPECT_EQ(space->near_bytes(pages(0, 2).first((3_MiB).count())), 1_MiB);
  use(1, 2);
  EXPECT_EQ(move(1, 1, MemoryTier::kFar), nullptr);
  EXPECT_EQ(space->near_bytes(space->slab()), 2_MiB);
}

TEST_F(CudaManagedSpaceTest, PopulatesWhatIsAwayInOneCall) {
  make(options());
  space->hints().populate(pages(1, 1));
  static_cast<void>(api->take_log());
  space->hints().populate(pages(0, 3));
  EXPECT_EQ(api->take_log().front(), "um upkeep: discard and prefetch near slab 0+1 slab 2+1");
}

TEST_F(CudaManagedSpaceTest, PrefetchesWhereTheDriverHasNoDiscard) {
  CudaFacts old = RecordingApi::h200();
  old.has_discard = false;
  make(options(), old);
  space->hints().populate(pages(0, 2));
  EXPECT_EQ(api->take_log().front(), "um upkeep: prefetch near slab 0+2");
  space->hints().discard(pages(0, 2));
  EXPECT_EQ(api->take_log(), Log{});
  EXPECT_EQ(ledger.in_use(), 0_MiB);
  space->hints().populate(pages(0, 2));  // they are still near
  EXPECT_EQ(api->take_log(), Log{});
}

// Page 1 is near with dead content when the driver refuses.
TEST_F(CudaManagedSpaceTest, LeavesPagesAsTheyWereWhenTheyCannotBePopulated) {
  make(options());
  space->hints().populate(pages(0, 2));
  space->hints().discard(pages(1, 1));
  api->fail("discard and prefetch near", cudaErrorInvalidValue);
  EXPECT_THROW(space->hints().populate(pages(0, 3)), CudaError);
  EXPECT_EQ(ledger.in_use(), 2_MiB);
  EXPECT_EQ(space->near_bytes(space->slab()), 2_MiB);
  api->fail("", cudaSuccess);
  static_cast<void>(api->take_log());
  space->hints().populate(pages(0, 3));
  EXPECT_EQ(api->take_log().front(), "um upkeep: discard and prefetch near slab 2+1");
  EXPECT_EQ(ledger.in_use(), 6_MiB);
}

// The room is there, so that it stays charged.
TEST_F(CudaManagedSpaceTest, KeepsPopulatedPagesWhoseEventFails) {
  make(options());
  api->fail("um upkeep: record", cudaErrorInvalidValue);
  EXPECT_THROW(space->hints().populate(pages(0, 2)), CudaError);
  EXPECT_EQ(ledger.in_use(), 4_MiB);
}

TEST_F(CudaManagedSpaceTest, ReleasesTheChargeOfAnOffloadWhenItsEventHasFired) {
  make(options());
  space->hints().populate(pages(0, 3));
  use(0, 3);
  static_cast<void>(api->take_log());
  api->hold();
  std::promise<void> ended;
  space->hints().prefetch(pages(0, 2), MemoryTier::kFar,
                          [&](const std::exception_ptr&) { ended.set_value(); });
  api->wait_until_noted("um out: record");
  EXPECT_EQ(ledger.in_use(), 6_MiB);
  api->finish("um out");
  ended.get_future().wait();
  EXPECT_EQ(ledger.in_use(), 2_MiB);
  EXPECT_EQ(space->counters().bytes_offloaded, 4_MiB);
  EXPECT_EQ(api->take_log(), (Log{"um out: prefetch far slab 0+2", "um out: record"}));
}

class WaitCountingApi : public RecordingApi {
 public:
  void synchronize(cudaStream_t stream) override {
    ++waits;
    RecordingApi::synchronize(stream);
  }
  using RecordingApi::synchronize;
  std::atomic<int> waits = 0;
};

TEST_F(CudaManagedSpaceTest, MovesALargeRangeByHintsThatLetLaunchesInBetween) {
  WaitCountingApi own;
  CudaManagedMemory from{own, std::nullopt};
  ComputeStreams none{own};
  Ledger wide{40_MiB};
  CudaManagedSpace made{own, from, none, nullptr, {.size = 40_MiB, .near = 40_MiB, .page = 2_MiB},
                        wide};
  static_cast<void>(own.take_log());
  const auto move = [&](MemoryTier tier) {
    std::promise<std::exception_ptr> ended;
    made.hints().prefetch(made.slab(), tier,
                          [&](std::exception_ptr failure) { ended.set_value(std::move(failure)); });
    EXPECT_EQ(ended.get_future().get(), nullptr);
    return own.take_log();
  };
  EXPECT_EQ(move(MemoryTier::kNear), (Log{"um in: prefetch near slab 0+16",
                                          "um in: prefetch near slab 16+4", "um in: record"}));
  EXPECT_EQ(own.waits, 0);
  EXPECT_EQ(move(MemoryTier::kFar),
            (Log{"um out: prefetch far slab 0+4", "um out: prefetch far slab 4+4",
                 "um out: prefetch far slab 8+4", "um out: prefetch far slab 12+4",
                 "um out: prefetch far slab 16+4", "um out: record"}));
  EXPECT_EQ(own.waits, 4);  // each hint out but the first waits for the last one
  EXPECT_EQ(made.counters().bytes_prefetched, 40_MiB);
  EXPECT_EQ(made.counters().bytes_offloaded, 40_MiB);
}

TEST_F(CudaManagedSpaceTest, HasTwoOffloadsUnderWayThatEndInTheirOrder) {
  make(options());
  space->hints().populate(pages(0, 3));
  use(0, 3);
  static_cast<void>(api->take_log());
  api->hold();
  std::vector<int> ended;
  std::promise<void> both;
  space->hints().prefetch(pages(0, 1), MemoryTier::kFar,
                          [&](const std::exception_ptr&) { ended.push_back(1); });
  space->hints().prefetch(pages(1, 1), MemoryTier::kFar, [&](const std::exception_ptr&) {
    ended.push_back(2);
    both.set_value();
  });
  api->wait_until_noted("um out 2: record");  // although the first one has not ended
  EXPECT_EQ(api->take_log(), (Log{"um out: prefetch far slab 0+1", "um out: record",
                                  "um out 2: prefetch far slab 1+1", "um out 2: record"}));
  api->finish("um out 2");
  EXPECT_EQ(ledger.in_use(), 6_MiB);  // its room is counted after that of the first one
  api->finish("um out");
  both.get_future().wait();
  EXPECT_EQ(ended, (std::vector{1, 2}));
  EXPECT_EQ(ledger.in_use(), 2_MiB);
}

// A driver that takes its time to give room.
class SlowRoom final : public RecordingApi {
 public:
  void discard_and_prefetch_near(std::span<const Range> ranges, cudaStream_t stream) override {
    RecordingApi::discard_and_prefetch_near(ranges, stream);
    note("room comes");
    may_end_.wait();
  }
  void let_end() { end_.set_value(); }

 private:
  std::promise<void> end_;
  std::shared_future<void> may_end_{end_.get_future()};
};

TEST_F(CudaManagedSpaceTest, EndsMovesWhileTheDriverGivesRoom) {
  SlowRoom own;
  CudaManagedMemory from{own, std::nullopt};
  ComputeStreams none{own};
  CudaManagedSpace made{own, from, none, nullptr, options(), ledger};
  std::promise<void> near;
  made.hints().prefetch(made.slab().first((2_MiB).count()), MemoryTier::kNear,
                        [&](const std::exception_ptr&) { near.set_value(); });
  near.get_future().wait();
  std::thread populating{[&] { made.hints().populate(made.slab().last((2_MiB).count())); }};
  own.wait_until_noted("room comes");
  made.hints().prefetch(made.slab().first((2_MiB).count()), MemoryTier::kFar,
                        [](const std::exception_ptr&) {});
  while (!test::all_others_sleep()) std::this_thread::yield();
  const Bytes counted = ledger.in_use();
  own.let_end();
  populating.join();
  EXPECT_EQ(counted, 2_MiB);  // only the page that is populated
}

TEST_F(CudaManagedSpaceTest, ChargesAPrefetchWhenItIsAskedFor) {
  make(options());
  api->hold();
  std::promise<void> ended;
  space->hints().prefetch(pages(0, 2), MemoryTier::kNear,
                          [&](const std::exception_ptr&) { ended.set_value(); });
  EXPECT_EQ(ledger.in_use(), 4_MiB);
  EXPECT_THROW(space->hints().prefetch(pages(2, 2), MemoryTier::kNear, {}), OutOfMemory);
  api->finish("um in");
  ended.get_future().wait();
  EXPECT_EQ(space->counters().bytes_prefetched, 4_MiB);
}

TEST_F(CudaManagedSpaceTest, LetsLaunchesWaitForAPrefetchThatIsUnderWay) {
  make(options());
  api->hold();
  std::promise<void> first;
  std::promise<void> second;
  space->hints().prefetch(pages(0, 1), MemoryTier::kNear,
                          [&](const std::exception_ptr&) { first.set_value(); });
  space->hints().prefetch(pages(1, 1), MemoryTier::kNear,
                          [&](const std::exception_ptr&) { second.set_value(); });
  EXPECT_TRUE(space->hints().lets_launches_wait(pages(1, 2)));  // returns before any end
  EXPECT_EQ(api->take_log(), (Log{"um in: prefetch near slab 0+1", "um in: record",
                                  "um in 2: prefetch near slab 1+1", "um in 2: record",
                                  "compute: wait for um in 2"}));
  api->let_go();
  first.get_future().wait();
  second.get_future().wait();
  EXPECT_TRUE(space->hints().lets_launches_wait(pages(1, 2)));
  EXPECT_EQ(api->take_log(), Log{});  // it has ended
}

TEST_F(CudaManagedSpaceTest, AFailedMoveReachesItsCompletionAndTheNextUse) {
  make(options());
  EXPECT_NO_THROW(space->hints().check());
  api->fail("prefetch near", cudaErrorInvalidValue);
  EXPECT_NE(move(0, 1, MemoryTier::kNear), nullptr);
  EXPECT_THROW(space->hints().begin_use({}), CudaError);
  EXPECT_THROW(space->hints().check(), CudaError);
  EXPECT_EQ(space->counters().bytes_prefetched, 0_MiB);
}

TEST_F(CudaManagedSpaceTest, RefusesInOneSentenceWhatAGpuCannotDo) {
  CudaFacts wsl = RecordingApi::h200();
  wsl.has_concurrent_managed_access = false;
  expect_refused([&] { make(options(), wsl); }, "use --memory copy");
  ManagedOptions small_pages = options();
  small_pages.page = 64_KiB;
  expect_refused([&] { make(small_pages); }, "units of 2.00 MiB");
  ManagedOptions on_disk = options();
  on_disk.far.file = "/tmp/far";
  expect_refused([&] { make(on_disk); }, "leave out --far file");
  ManagedOptions slow = options();
  slow.link.bandwidth = Bandwidth{1e9};
  expect_refused([&] { make(slow); }, "leave out --link-bandwidth");
  ManagedOptions paged = options();
  paged.paging = Paging::kMemfdSegv;
  expect_refused([&] { make(paged); }, "leave out --paging");
}

TEST_F(CudaManagedSpaceTest, IsRefusedWhereRamHasNoRoomForWhatWillBeFar) {
  ManagedOptions far_away = options();
  far_away.far.used = Bytes{1ULL << 50U};
  expect_refused([&] { make(far_away); }, "put 1024 TiB of unified memory");
  far_away.far.used = 2_MiB;
  make(far_away);
}

TEST_F(CudaManagedSpaceTest, AllocatesNothingThatTheGpuHasNoRoomFor) {
  RecordingApi own;
  own.set_free(519_MiB);  // 8 MiB and the margin of 512 MiB are 520 MiB
  CudaManagedMemory from{own, std::nullopt};
  expect_refused([&] { static_cast<void>(from.allocate(8_MiB, false)); }, "--oversubscribe");
  EXPECT_EQ(own.take_log(), Log{});
  own.set_free(520_MiB);
  from.free(from.allocate(8_MiB, false));
  own.set_free(0_MiB);
  from.free(from.allocate(8_MiB, true));
  EXPECT_EQ(own.live_objects(), 0U);
}

// A driver that aligns to 64 KiB: the check includes room for a gap.
class UnalignedApi final : public RecordingApi {
 public:
  [[nodiscard]] std::byte* allocate_managed(Bytes size) override {
    return RecordingApi::allocate_managed(size + 64_KiB) + (64_KiB).count();
  }
  void free_managed(std::byte* address) noexcept override {
    RecordingApi::free_managed(address - (64_KiB).count());
  }
};

TEST_F(CudaManagedSpaceTest, IsAlignedEvenWhereTheDriversMemoryIsNot) {
  UnalignedApi own;
  CudaManagedMemory from{own, 10_MiB};
  std::byte* const address = from.allocate(8_MiB, false);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % (2_MiB).count(), 0U);
  EXPECT_EQ(own.live_objects(), 1U);
  EXPECT_EQ(own.take_log().back(), "advise slab 1+4 near");
  from.free(address);
  EXPECT_EQ(own.live_objects(), 0U);
  expect_refused([&] { static_cast<void>(from.allocate(10_MiB, false)); }, "limit of 10.0 MiB");
  EXPECT_EQ(own.live_objects(), 0U);
}

TEST_F(CudaManagedSpaceTest, CountsAllUnifiedMemoryTogetherAndKeepsALimitWhateverIsAsked) {
  RecordingApi own;
  CudaManagedMemory from{own, 12_MiB};
  std::byte* const first = from.allocate(8_MiB, false);
  expect_refused([&] { static_cast<void>(from.allocate(6_MiB, true)); }, "limit of 12.0 MiB");
  from.free(first);
  from.free(from.allocate(12_MiB, true));
}

// 4 MiB of the first slab are near: the driver does not count them as free.
TEST_F(CudaManagedSpaceTest, NeedsRoomOnceForUnifiedMemoryThatIsNear) {
  make(options());
  space->hints().populate(pages(0, 2));
  api->set_free(512_MiB + 4_MiB + 8_MiB);
  memory->free(memory->allocate(8_MiB, false));
  api->set_free(512_MiB + 4_MiB + 7_MiB);
  expect_refused([&] { static_cast<void>(memory->allocate(8_MiB, false)); }, "--oversubscribe");
  use(0, 2);
  EXPECT_EQ(move(0, 2, MemoryTier::kFar), nullptr);  // these may come again
  api->set_free(512_MiB + 8_MiB + 7_MiB);
  expect_refused([&] { static_cast<void>(memory->allocate(8_MiB, false)); }, "--oversubscribe");
}

TEST(ManagedRoom, IsFreeMemoryLessAMargin) {
  EXPECT_NO_THROW(expect_managed_room(1_GiB, {.free = 1536_MiB}));
  EXPECT_THROW(expect_managed_room(1_GiB, {.free = 1535_MiB}), Error);
  EXPECT_THROW(expect_managed_room(1_GiB, {.free = 1536_MiB, .taken = 1_MiB}), Error);
  EXPECT_NO_THROW(expect_managed_room(1_GiB, {.free = 1536_MiB, .taken = 1_MiB, .near = 1_MiB}));
  EXPECT_NO_THROW(expect_managed_room(1_GiB, {.free = 0_MiB, .oversubscribe = true}));
}

TEST(ManagedRoom, KeepsItsLimitEvenWhenOversubscribed) {
  const ManagedRoom room{.free = 80_GiB, .taken = 1_GiB, .limit = 2_GiB, .oversubscribe = true};
  EXPECT_NO_THROW(expect_managed_room(1_GiB, room));
  EXPECT_THROW(expect_managed_room(1025_MiB, room), Error);
}

}  // namespace
}  // namespace spillway::um
