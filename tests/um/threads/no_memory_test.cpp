// What still works when nothing can be allocated any more.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <thread>

#include "um/threads/thread_stream.h"

namespace {
thread_local bool is_out_of_memory = false;
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = is_out_of_memory ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

namespace spillway::um {
namespace {

class OutOfMemoryHere {
 public:
  OutOfMemoryHere() { is_out_of_memory = true; }
  OutOfMemoryHere(const OutOfMemoryHere&) = delete;
  OutOfMemoryHere& operator=(const OutOfMemoryHere&) = delete;
  ~OutOfMemoryHere() { is_out_of_memory = false; }
};

TEST(OutOfMemoryHere, LetsNothingBeAllocated) {
  const OutOfMemoryHere none;
  EXPECT_THROW(static_cast<void>(::operator new(1)), std::bad_alloc);
}

// Whoever unwinds for want of memory frees what the stream's work uses, and has to wait for it.
TEST(ThreadStream, SynchronizesWithoutMemory) {
  ThreadStream stream{"test"};
  std::atomic<bool> is_done{false};
  stream.enqueue([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    is_done = true;
  });
  {
    const OutOfMemoryHere none;
    stream.synchronize();
  }
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace spillway::um
