// Operations of a GPU stream that must work when no memory can be allocated.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <thread>

#include "tests/sleeping_threads.h"
#include "tests/um/cuda/recording_api.h"
#include "tests/um/out_of_memory.h"
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

}  // namespace
}  // namespace spillway::um
