// Operations that must work when no memory can be allocated.
#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "tests/um/out_of_memory.h"
#include "um/threads/thread_stream.h"

namespace spillway::um {
namespace {

// A caller that unwinds from a lack of memory frees what the stream's work uses, and must wait for
// it. The queue of jobs allocates only for some jobs.
TEST(ThreadStream, SynchronizesWithoutMemory) {
  ThreadStream stream{"test"};
  std::atomic<int> done{0};
  for (int i = 1; i <= 40; ++i) {
    stream.enqueue([&] { ++done; });
    is_next_refused = true;
    stream.synchronize();
    EXPECT_TRUE(std::exchange(is_next_refused, false)) << "it allocates";
    EXPECT_EQ(done, i);
  }
}

}  // namespace
}  // namespace spillway::um
