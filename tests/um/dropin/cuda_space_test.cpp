#include <gtest/gtest.h>

#include <algorithm>
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
  space->free_after(first, device.record(stream));
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
  space->free_after(first, device.record(stream));
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
  space->free_after(take(2), device.record(stream));
  api.fail_events(cudaErrorLaunchFailure);
  space.reset();
  api.fail_events(cudaSuccess);
  api.end_stream(stream);
}

// The event would belong to the graph: it would fire at each launch of the graph, and never now.
TEST_F(CudaSpace, NothingIsFreedOnAStreamThatIsBeingCaptured) {
  auto* const stream = api.make_stream("program");
  api.capture(true);
  EXPECT_THROW(static_cast<void>(device.record(stream)), Error);
  api.capture(false);
  EXPECT_NE(device.record(stream), nullptr);
  api.end_stream(stream);
}

TEST_F(CudaSpace, GivesMemoryBackOnceAlsoWhenTheDriverFails) {
  auto* const stream = api.make_stream("program");
  api.hold();
  std::byte* const first = take(1);
  space->advise(first, 2_MiB, Advice::kPreferFar);
  space->free_after(first, device.record(stream));
  api.finish("program");
  api.fail("advise", cudaErrorUnknown);  // the end of the advice
  EXPECT_THROW(static_cast<void>(take(1)), Error);
  api.fail("nothing", cudaSuccess);
  EXPECT_EQ(take(4), first);
  api.end_stream(stream);
}

}  // namespace
}  // namespace spillway::um
