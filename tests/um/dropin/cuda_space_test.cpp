#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/refusal.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"
#include "um/dropin/allocations.h"
#include "um/dropin/space.h"

namespace spillway::um {
namespace {

// Four pages of 2 MiB with room for two near, on a recording driver.
class CudaSpace : public testing::Test {
 protected:
  ~CudaSpace() override { api.let_go(); }
  [[nodiscard]] std::byte* take(std::uint64_t pages) { return space->allocate(pages * 2_MiB, 0_B); }
  [[nodiscard]] bool noted(const std::string& part) {
    const std::vector<std::string> log = api.take_log();
    return std::ranges::any_of(
        log, [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }

  std::unique_ptr<RecordingApi> owned = std::make_unique<RecordingApi>();
  RecordingApi& api = *owned;
  CudaDevice device{std::move(owned), {.managed_limit = 8_MiB}};
  std::unique_ptr<Space> space =
      std::make_unique<Space>(device, SpaceOptions{.near = 4_MiB, .capacity = 8_MiB});
};

TEST_F(CudaSpace, HintsBecomeTheDriversMoves) {
  std::byte* const two = take(2);
  space->prefetch(two, 2_MiB + 1_B, MemoryTier::kNear);
  space->synchronize();
  EXPECT_TRUE(noted("um in: prefetch near slab 0+2"));
  EXPECT_EQ(space->near_bytes(two, 4_MiB), 4_MiB);
  space->prefetch(two, 1_B, MemoryTier::kFar);
  space->synchronize();
  EXPECT_TRUE(noted("um out: prefetch far slab 0+1"));
  EXPECT_EQ(space->counters().near, 2_MiB);
  EXPECT_EQ(space->counters().moves.bytes_offloaded, 2_MiB);
}

TEST_F(CudaSpace, RefusesPagesThatAreNoPowerOfTwoOfTheDriversUnit) {
  const auto refusal = [&](Bytes page) {
    return test::refusal([&] {
      return Space{device, {.near = 16_MiB, .capacity = 32_MiB, .page = page}}.counters().frees;
    });
  };
  EXPECT_EQ(refusal(1_MiB), "pages of 1.00 MiB; give a power of two of at least 2 MiB, or 0");
  EXPECT_EQ(refusal(6_MiB), "pages of 6.00 MiB; give a power of two of at least 2 MiB, or 0");
}

TEST_F(CudaSpace, APrefetchBeyondTheBudgetIsRefusedAndCounted) {
  std::byte* const three = take(3);
  space->prefetch(three, 6_MiB, MemoryTier::kNear);  // room for two pages
  space->synchronize();
  EXPECT_TRUE(noted("um in: prefetch near slab 0+2"));
  EXPECT_EQ(space->counters().moves.refused_hints, 1U);
  space->prefetch(three + (4_MiB).count(), 2_MiB, MemoryTier::kNear);
  space->synchronize();
  EXPECT_FALSE(noted("prefetch"));
  EXPECT_EQ(space->counters().moves.refused_hints, 2U);
}

TEST_F(CudaSpace, NeverDiscardsWhatAnotherStreamMayAlreadyWrite) {
  std::byte* const two = take(2);
  space->prefetch(two, 4_MiB, MemoryTier::kNear);
  space->synchronize();
  space->discard(two, 2_MiB);
  space->free(two);
  EXPECT_FALSE(noted("discard"));
  EXPECT_EQ(space->counters().near, 0_B);  // other pages may be brought near
}

TEST_F(CudaSpace, MemoryFreedOnAStreamWaitsForTheStream) {
  auto* const stream = api.make_stream("program");
  api.hold();
  std::byte* const first = take(2);
  space->free_after(first, *device.program_stream(stream));
  std::byte* const second = take(2);
  EXPECT_NE(second, first);
  api.finish("program");
  EXPECT_EQ(take(2), first);
  api.end_stream(stream);
}

TEST_F(CudaSpace, MemoryFreedOnAStreamIsNotGivenOutWhenTheDriverCannotTellHowFarItIs) {
  auto* const stream = api.make_stream("program");
  api.hold();
  std::byte* const first = take(2);
  space->free_after(first, *device.program_stream(stream));
  api.fail_events(cudaErrorLaunchFailure);
  EXPECT_NE(take(2), first);
  EXPECT_THROW(static_cast<void>(take(2)), OutOfMemory);  // waits; the event's state is unknown
  api.fail_events(cudaSuccess);
  api.finish("program");
  EXPECT_EQ(take(2), first);
  api.end_stream(stream);
}

TEST_F(CudaSpace, EndsAlsoWhenTheDriverCannotTellHowFarAStreamIs) {
  auto* const stream = api.make_stream("program");
  api.hold();
  space->free_after(take(2), *device.program_stream(stream));
  api.fail_events(cudaErrorLaunchFailure);
  space.reset();
  api.fail_events(cudaSuccess);
  api.end_stream(stream);
}

// The event would belong to the graph: it would fire at each launch of the graph, and never now.
TEST_F(CudaSpace, NothingIsFreedOnAStreamThatIsBeingCaptured) {
  auto* const stream = api.make_stream("program");
  api.capture(true);
  std::byte* const block = take(1);
  EXPECT_THROW(space->free_after(block, *device.program_stream(stream)), Error);
  EXPECT_EQ(space->counters().frees, 0U);
  api.capture(false);
  space->free_after(block, *device.program_stream(stream));
  EXPECT_EQ(space->counters().frees, 1U);
  api.end_stream(stream);
}

TEST_F(CudaSpace, GivesMemoryBackOnceAlsoWhenTheDriverFails) {
  auto* const stream = api.make_stream("program");
  api.hold();
  std::byte* const first = take(1);
  space->advise(first, 2_MiB, Advice::kPreferFar);
  space->free_after(first, *device.program_stream(stream));
  api.finish("program");
  api.fail("advise", cudaErrorUnknown);  // the end of the advice
  EXPECT_THROW(static_cast<void>(take(1)), Error);
  api.fail("nothing", cudaSuccess);
  EXPECT_EQ(take(4), first);
  api.end_stream(stream);
}

// --- memory of a program's stream

class StreamOfCudaSpace : public CudaSpace {
 protected:
  ~StreamOfCudaSpace() override {
    api.let_go();
    api.synchronize_all();
    space.reset();
    api.end_stream(native);
  }
  void oversubscribe() {
    space.reset();
    space = std::make_unique<Space>(
        device, SpaceOptions{.near = 4_MiB, .capacity = 8_MiB, .oversubscribe = true});
  }
  [[nodiscard]] std::byte* take_for_stream(Bytes size) {
    return space->allocate_for(*stream, size, 0_B);
  }
  // Launches a kernel of the program that writes the memory.
  void write(std::byte* memory, Bytes size) {
    const std::array uses{Use{.range = {memory, size.count()}, .access = Access::kWrite}};
    api.launch(native, "write", uses);
  }

  cudaStream_t native = api.make_stream("program");
  std::unique_ptr<ProgramStream> stream = device.program_stream(native);
};

TEST_F(StreamOfCudaSpace, NewMemoryIsNearBeforeItsLaterWork) {
  api.hold();
  std::byte* const two = take_for_stream(4_MiB);
  EXPECT_EQ(space->near_bytes(two, 4_MiB), 4_MiB);
  write(two, 4_MiB);
  const std::vector<std::string> log = api.take_log();
  const auto prefetch = std::ranges::find(log, "um in: prefetch near slab 0+2");
  const auto wait = std::ranges::find(log, "program: wait for um in");
  ASSERT_NE(prefetch, log.end());
  EXPECT_LT(prefetch, wait);
  EXPECT_LT(wait, std::ranges::find(log, "program: write"));
  api.finish("um in");
  space->synchronize();
  EXPECT_EQ(space->counters().moves.bytes_prefetched, 4_MiB);
}

TEST_F(StreamOfCudaSpace, OnlyTheStreamOfAnAllocationWaits) {
  cudaStream_t other = api.make_stream("other");
  static_cast<void>(take_for_stream(2_MiB));
  static_cast<void>(api.take_log());
  api.hold();
  const std::unique_ptr<ProgramStream> wanted = device.program_stream(other);
  static_cast<void>(space->allocate_for(*wanted, 2_MiB, 0_B));
  EXPECT_TRUE(noted("other: wait for um in"));
  EXPECT_FALSE(noted("program: wait"));
  api.let_go();
  api.end_stream(other);
}

// A page that is near already takes no call of the driver.
TEST_F(StreamOfCudaSpace, SmallAllocationsOnAPageAreBroughtNearOnce) {
  static_cast<void>(take_for_stream(1_KiB));
  EXPECT_TRUE(noted("prefetch near slab 0+1"));
  static_cast<void>(take_for_stream(1_KiB));
  EXPECT_FALSE(noted("prefetch"));
}

TEST_F(StreamOfCudaSpace, AnAllocationBeyondTheBudgetStaysAwayAndIsCounted) {
  static_cast<void>(take_for_stream(4_MiB));
  std::byte* const far = take_for_stream(4_MiB);
  EXPECT_EQ(space->near_bytes(far, 4_MiB), 0_B);
  EXPECT_EQ(space->counters().moves.refused_hints, 2U);
  EXPECT_EQ(space->counters().allocations, 2U);
}

TEST_F(StreamOfCudaSpace, AGraphWaitsForNoMoveOutsideIt) {
  api.hold();
  api.capture(true);
  static_cast<void>(take_for_stream(2_MiB));
  api.capture(false);
  api.wait_until_noted("um in: prefetch near slab 0+1");
  EXPECT_FALSE(noted("program: wait"));
}

TEST_F(StreamOfCudaSpace, AnAllocationWhoseStreamCannotWaitIsGivenBack) {
  api.hold();
  api.fail("program: wait", cudaErrorUnknown);
  EXPECT_THROW(static_cast<void>(take_for_stream(2_MiB)), Error);
  EXPECT_EQ(space->counters().allocated, 0_B);
  api.fail("nothing", cudaSuccess);
}

// Otherwise an eviction would write dead content back.
TEST_F(StreamOfCudaSpace, FreedMemoryIsDroppedBehindItsStreamWhereTheDriverMayEvict) {
  oversubscribe();
  std::byte* const first = take_for_stream(4_MiB);
  write(first, 4_MiB);
  api.hold();
  space->free_after(first, *stream);
  const std::vector<std::string> log = api.take_log();
  const auto wait = std::ranges::find(log, "um dead: wait for program");
  ASSERT_NE(wait, log.end());
  EXPECT_LT(wait, std::ranges::find(log, "um dead: discard slab 0+2"));
  EXPECT_EQ(space->counters().moves.discarded_pages, 2U);
  api.finish("program");
  EXPECT_NE(take_for_stream(2_MiB), first) << "not dropped yet";
  api.finish("um dead");
  std::byte* const again = take_for_stream(4_MiB);
  EXPECT_EQ(again, first);
  write(again, 4_MiB);
}

// The page of another allocation keeps its content.
TEST_F(StreamOfCudaSpace, DropsWholePagesOfAnAllocationAlone) {
  oversubscribe();
  std::byte* const first = take_for_stream(2_MiB + 1_KiB);
  static_cast<void>(take_for_stream(1_KiB));
  space->free_after(first, *stream);
  EXPECT_TRUE(noted("um dead: discard slab 0+1"));
}

TEST_F(StreamOfCudaSpace, FreedMemoryIsNotDroppedWhereNothingIsEvicted) {
  space->free_after(take_for_stream(4_MiB), *stream);
  EXPECT_FALSE(noted("discard"));
}

TEST_F(StreamOfCudaSpace, ADiscardThatFailsIsCountedAndTheMemoryIsFreed) {
  oversubscribe();
  std::byte* const first = take_for_stream(4_MiB);
  api.fail("discard", cudaErrorUnknown);
  space->free_after(first, *stream);
  api.fail("nothing", cudaSuccess);
  EXPECT_EQ(space->counters().moves.refused_hints, 2U);
  EXPECT_EQ(space->counters().moves.discarded_pages, 0U);
  EXPECT_EQ(take_for_stream(4_MiB), first);
}

}  // namespace
}  // namespace spillway::um
