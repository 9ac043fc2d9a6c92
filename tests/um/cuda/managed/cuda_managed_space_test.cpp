#include "um/cuda/managed/cuda_managed_space.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "tests/refusal.h"
#include "tests/um/cuda/recording_api.h"
#include "um/error.h"

namespace spillway::um {
namespace {

using Log = std::vector<std::string>;

template <class Action>
void expect_refused(const Action& action, const std::string& part) {
  const std::string sentence = test::refusal(action);
  EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
}

// Four pages of 2 MiB, of which three may be near; one compute stream.
class CudaManagedSpaceTest : public ::testing::Test {
 protected:
  static ManagedOptions options() { return {.size = 8_MiB, .near = 6_MiB, .page = 2_MiB}; }

  void make(const ManagedOptions& wanted, const CudaFacts& facts = RecordingApi::h200()) {
    api.emplace(facts);
    memory.emplace(*api, std::nullopt);
    compute.emplace(*api);
    stream = api->make_stream("compute");
    compute->add(stream);
    space.emplace(*api, *memory, *compute, nullptr, wanted, ledger);
    static_cast<void>(api->take_log());
  }
  ~CudaManagedSpaceTest() override {
    if (api) api->let_go();
  }
  [[nodiscard]] Range pages(std::size_t first, std::size_t count) {
    return space->slab().subspan(first * (2_MiB).count(), count * (2_MiB).count());
  }
  [[nodiscard]] std::exception_ptr move(std::size_t first, std::size_t count, MemoryTier tier) {
    std::promise<std::exception_ptr> ended;
    space->hints().prefetch(pages(first, count), tier, [&](std::exception_ptr failure) {
      ended.set_value(std::move(failure));
    });
    return ended.get_future().get();
  }

  // As a step does between a hint and a move: a kernel on the pages, and its end.
  void use(std::size_t first, std::size_t count) {
    const Use written{.range = pages(first, count), .access = Access::kWrite};
    api->launch(stream, "use", {&written, 1});
    api->synchronize(stream);
  }

  Ledger ledger{6_MiB};
  std::optional<RecordingApi> api;
  cudaStream_t stream = nullptr;  // what kernels run on
  std::optional<CudaManagedMemory> memory;
  std::optional<ComputeStreams> compute;
  std::optional<CudaManagedSpace> space;
};

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
  space->hints().populate(pages(1, 2));  // returns though nothing has fired
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
  space->hints().populate(pages(0, 2));  // nobody has taken them away
  EXPECT_EQ(api->take_log(), Log{});
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

TEST_F(CudaManagedSpaceTest, DiscardsOnTheStreamThatPopulates) {
  make(options());
  space->hints().populate(pages(0, 3));
  static_cast<void>(api->take_log());
  space->hints().retire(pages(0, 2));
  EXPECT_EQ(api->take_log(), Log{});
  EXPECT_EQ(ledger.in_use(), 2_MiB);
  space->hints().discard(pages(0, 2));
  EXPECT_EQ(api->take_log(), (Log{"um upkeep: discard slab 0+2"}));
  EXPECT_EQ(space->counters().discarded_pages, 2U);
}

TEST_F(CudaManagedSpaceTest, TellsTheDriverNothingOfDeadPagesWhenAskedNotTo) {
  ManagedOptions without = options();
  without.gpu.discards = false;
  make(without);
  space->hints().populate(pages(0, 3));
  static_cast<void>(api->take_log());
  space->hints().discard(pages(0, 3));
  EXPECT_EQ(api->take_log(), Log{});
  EXPECT_EQ(ledger.in_use(), 0_MiB);
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

// A driver that aligns to 64 KiB: room for a gap is asked for, and checked, as well.
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

}  // namespace
}  // namespace spillway::um
