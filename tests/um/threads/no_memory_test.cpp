// What still works when nothing can be allocated any more.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/um/out_of_memory.h"
#include "um/threads/thread_stream.h"

namespace spillway::um {
namespace {

TEST(OutOfMemoryHere, LetsNothingBeAllocated) {
  const OutOfMemoryHere none;
  EXPECT_THROW(static_cast<void>(::operator new(1)), std::bad_alloc);
}

// Whoever unwinds for want of memory frees what the stream's work uses, and has to wait for it. The
// queue of jobs allocates for some of them only.
TEST(ThreadStream, SynchronizesWithoutMemory) {
  ThreadStream stream{"test"};
  std::atomic<int> done{0};
  for (int i = 1; i <= 40; ++i) {
    stream.enqueue([&] { ++done; });
    {
      const OutOfMemoryHere none;
      stream.synchronize();
    }
    EXPECT_EQ(done, i);
  }
}

}  // namespace
}  // namespace spillway::um
