#include "tests/um/cuda/happens_before.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/um/cuda/recording_api.h"

// Reported and unreported accesses without an order.

namespace spillway::um {
namespace {

using Conflicts = std::vector<std::string>;

// Two streams of kernels, "a" and "b", and four pages of unified memory.
class WorkOfTwoStreams : public ::testing::Test {
 protected:
  WorkOfTwoStreams() {
    api.tell_conflicts([this](const std::string& conflict) { told.push_back(conflict); });
  }
  ~WorkOfTwoStreams() override {
    if (slab != nullptr) api.free_managed(slab);
  }
  [[nodiscard]] Range pages(std::size_t first, std::size_t count) {
    return {slab + first * (2_MiB).count(), count * (2_MiB).count()};
  }
  void launch(cudaStream_t stream, const std::string& name, Range range, Access access) {
    const Use use{.range = range, .access = access};
    api.launch(stream, name, {&use, 1});
  }
  [[nodiscard]] std::size_t taken() { return std::exchange(told, {}).size(); }

  Conflicts told;
  RecordingApi api;
  cudaStream_t a = api.make_stream("a");
  cudaStream_t b = api.make_stream("b");
  cudaEvent_t event = api.make_event();
  std::byte* slab = api.allocate_managed(8_MiB);
};

TEST_F(WorkOfTwoStreams, IsToldWithBothNamesAndTheRangeWhenItHasNoOrder) {
  launch(a, "write", pages(0, 2), Access::kWrite);
  launch(b, "read", pages(1, 2), Access::kRead);
  EXPECT_EQ(told, (Conflicts{"no order between \"a: write\" and, later, \"b: read\" on slab 1+1"}));
}

TEST_F(WorkOfTwoStreams, NeedsNoOrderWhereItOnlyReadsOrDoesNotOverlap) {
  launch(a, "read", pages(0, 2), Access::kRead);
  launch(b, "read", pages(0, 2), Access::kRead);
  launch(b, "write", pages(2, 2), Access::kReadWrite);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(WorkOfTwoStreams, IsOrderedByTheirStream) {
  launch(a, "write", pages(0, 2), Access::kWrite);
  launch(a, "read", pages(0, 2), Access::kRead);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(WorkOfTwoStreams, IsOrderedByAnEventThatTheSecondWaitsFor) {
  launch(a, "write", pages(0, 1), Access::kWrite);
  api.record(event, a);
  launch(a, "write", pages(1, 1), Access::kWrite);  // the event does not cover this one
  api.wait(b, event);
  launch(b, "write", pages(0, 1), Access::kWrite);
  EXPECT_EQ(taken(), 0U);
  launch(b, "write", pages(1, 1), Access::kWrite);
  EXPECT_EQ(taken(), 1U);
}

TEST_F(WorkOfTwoStreams, IsOrderedByTheHostThatHasWaited) {
  launch(a, "write", pages(0, 4), Access::kWrite);
  api.record(event, a);
  launch(b, "too early", pages(0, 1), Access::kRead);
  EXPECT_EQ(taken(), 1U);
  api.synchronize(event);
  launch(b, "read", pages(1, 1), Access::kRead);
  launch(a, "write", pages(2, 1), Access::kWrite);
  api.synchronize(a);
  launch(b, "read", pages(2, 1), Access::kRead);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(WorkOfTwoStreams, IsOrderedByAnEventThatTheHostSawFire) {
  api.hold();
  launch(a, "write", pages(0, 2), Access::kWrite);
  api.record(event, a);
  EXPECT_FALSE(api.has_fired(event));
  launch(b, "read", pages(0, 1), Access::kRead);
  EXPECT_EQ(taken(), 1U);
  api.finish("a");
  launch(b, "read", pages(0, 1), Access::kRead);  // it has fired, but the host has not asked
  EXPECT_EQ(taken(), 1U);
  EXPECT_TRUE(api.has_fired(event));
  launch(b, "read", pages(1, 1), Access::kRead);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(WorkOfTwoStreams, IsOrderedThroughAThirdStream) {
  cudaStream_t between = api.make_stream("between");
  launch(a, "write", pages(0, 1), Access::kWrite);
  api.record(event, a);
  api.wait(between, event);
  cudaEvent_t second = api.make_event();
  api.record(second, between);
  api.wait(b, second);
  launch(b, "read", pages(0, 1), Access::kRead);
  EXPECT_EQ(taken(), 0U);
}

TEST_F(WorkOfTwoStreams, OrdersEachMoveWithTheKernelsOnItsPages) {
  launch(a, "read", pages(0, 1), Access::kRead);
  api.prefetch(pages(0, 1), MemoryTier::kFar, b);
  EXPECT_EQ(taken(), 1U);
  api.prefetch(pages(1, 1), MemoryTier::kNear, b);
  launch(a, "read", pages(1, 1), Access::kRead);
  EXPECT_EQ(taken(), 1U);
  api.prefetch(pages(2, 1), MemoryTier::kNear, a);
  api.prefetch(pages(2, 1), MemoryTier::kNear, b);
  api.advise(pages(2, 1), Advice::kPreferNear);
  EXPECT_EQ(taken(), 0U);
  api.prefetch(pages(2, 1), MemoryTier::kFar, b);
  EXPECT_EQ(taken(), 1U);
}

TEST_F(WorkOfTwoStreams, OrdersDiscardsWithWhatUsesTheirPages) {
  const std::array<Range, 2> both{pages(0, 1), pages(2, 1)};
  launch(a, "read", pages(0, 1), Access::kRead);
  api.discard(both, b);
  EXPECT_EQ(taken(), 1U);
  api.discard_and_prefetch_near(std::span{both}.last(1), b);
  launch(a, "read", pages(2, 1), Access::kRead);
  EXPECT_EQ(taken(), 2U);  // also with the discard before it
}

TEST_F(WorkOfTwoStreams, OrdersBothSidesOfACopy) {
  std::byte* const far = api.allocate_pinned(2_MiB);
  api.copy(pages(0, 1), far, a);
  launch(b, "read", pages(0, 1), Access::kRead);
  EXPECT_EQ(taken(), 0U);
  launch(b, "write", pages(0, 1), Access::kWrite);
  EXPECT_EQ(taken(), 1U);
  api.copy({far, (2_MiB).count()}, pages(1, 1).data(), b);
  EXPECT_EQ(taken(), 1U);
  api.free_pinned(far);
  EXPECT_EQ(taken(), 2U);
}

TEST_F(WorkOfTwoStreams, MustBeOverWhenItsMemoryIsFreed) {
  launch(a, "read", pages(3, 1), Access::kRead);
  api.free_managed(std::exchange(slab, nullptr));
  EXPECT_EQ(
      told,
      (Conflicts{"no order between \"a: read\" and, later, \"the end of slab 0\" on slab 3+1"}));
}

TEST_F(WorkOfTwoStreams, IsForgottenWithItsMemory) {
  std::byte* const first = api.allocate_device(2_MiB);
  launch(a, "write", {first, 1}, Access::kWrite);
  api.synchronize(a);
  api.free_device(first);
  std::byte* const second = api.allocate_device(2_MiB);  // there or elsewhere
  launch(b, "write", {second, 1}, Access::kWrite);
  EXPECT_EQ(taken(), 0U);
  api.synchronize(b);
  api.free_device(second);
}

}  // namespace
}  // namespace spillway::um
