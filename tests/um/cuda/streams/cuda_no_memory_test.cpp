// Operations of a GPU stream that must work when no memory can be allocated.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <thread>

#include "tests/sleeping_threads.h"
#include "tests/um/cuda/recording_api.h"
#include "tests/um/out_of_memory.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/managed/cuda_managed_space.h"
#include "um/cuda/streams/cuda_stream.h"

namespace spillway::um {
namespace {

void wait_until_all_others_sleep() {
  while (!test::all_others_sleep()) std::this_thread::yield();
}

// A caller that unwinds from a lack of memory frees what the stream's work uses. It must wait for
// the work, the GPU and the notices. The second work and the notice end only when another thread
// waits for them.
TEST(CudaStream, SynchronizesWithoutMemory) {
  RecordingApi api;
  ComputeStreams compute{api};
  CudaStream stream{api, compute, "compute"};
  std::byte* const memory = api.allocate_device(2_MiB);
  const Use use{.range = {memory, 1}, .access = Access::kWrite};
  bool is_refused = false;
  while (!is_refused) {  // a queue allocates once in 16 jobs; with three jobs a round, each case
                         // occurs
    stream.enqueue([] {});
    std::atomic<bool> is_done{false};
    std::atomic<bool> is_told{false};
    stream.enqueue([&] {
      wait_until_all_others_sleep();
      stream.notify([&](auto) {
        wait_until_all_others_sleep();
        is_told = true;
      });
      api.launch(stream.native(), "write", {&use, 1});  // after the notice's event
      is_done = true;
    });
    is_next_refused = true;
    try {
      stream.synchronize();
    } catch (const std::bad_alloc&) {
      is_refused = true;
    }
    is_next_refused = false;
    ASSERT_TRUE(is_done);
    ASSERT_TRUE(is_told);
    api.touch(use.range, Access::kWrite);
  }
  api.free_device(memory);
}

// A driver that aligns to 256 bytes. No memory is left after the second allocation, which has room
// to be aligned.
class UnalignedDevice final : public RecordingApi {
 public:
  [[nodiscard]] std::byte* allocate_device(Bytes size) override {
    std::byte* const address = RecordingApi::allocate_device(size + 256_B) + 256;
    is_next_refused = is_second_;
    return address;
  }
  void free_device(std::byte* address) noexcept override {
    RecordingApi::free_device(address - 256);
    is_second_ = true;
  }

 private:
  bool is_second_ = false;
};

TEST(DeviceMemory, LeaksNothingWhenAnAllocationCannotBeNoted) {
  UnalignedDevice api;
  DeviceMemory memory{api};
  EXPECT_THROW(static_cast<void>(memory.allocate(100_B)), std::bad_alloc);
  EXPECT_EQ(api.live_objects(), 0U);
}

// Refuses each allocation of a prefetch once, from its first to its last.
TEST(CudaManagedSpace, ChargesNothingForAPrefetchThatCannotBeEnqueued) {
  RecordingApi api;
  CudaManagedMemory memory{api, std::nullopt};
  ComputeStreams compute{api};
  Ledger ledger{4_MiB};
  CudaManagedSpace space{
      api, memory, compute, nullptr, {.size = 4_MiB, .near = 4_MiB, .page = 2_MiB}, ledger};
  int refused = 0;
  for (bool is_refused = true; is_refused; ++refused) {
    is_refused = false;
    std::atomic<bool> has_ended{false};
    allocations_until_refusal = refused;
    try {
      space.hints().prefetch(space.slab(), MemoryTier::kNear,
                             [&](const std::exception_ptr&) { has_ended = true; });
    } catch (const std::bad_alloc&) {
      is_refused = true;
      EXPECT_EQ(ledger.in_use(), 0_B) << refused;
      EXPECT_EQ(space.near_bytes(space.slab()), 0_B) << refused;
    }
    allocations_until_refusal = -1;
    while (!is_refused && !has_ended) std::this_thread::yield();
  }
  EXPECT_GT(refused, 1);
  EXPECT_EQ(ledger.in_use(), 4_MiB);
}

}  // namespace
}  // namespace spillway::um
