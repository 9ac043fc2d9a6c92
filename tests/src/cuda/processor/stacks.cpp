#include "tests/src/cuda/processor/stacks.h"

#include <pthread.h>
#include <sys/mman.h>

#include <utility>

#include "um/error.h"

namespace spillway::processor {
namespace {

constexpr std::size_t kBytes = kMaxThreads * Fiber::kStackBytes;

}  // namespace

Stacks::Stacks()
    : memory_{static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))} {
  um::expects(memory_ != MAP_FAILED, "there is memory for the stacks of a block's threads");
  for (std::size_t i = 0; i < kMaxThreads; ++i) {
    free_.push_back(&fibers_.emplace_back(memory_ + i * Fiber::kStackBytes));
  }
}

Fiber& Stacks::take() {
  Fiber& fiber = *free_.back();
  free_.pop_back();
  return fiber;
}

void Stacks::give_back(Fiber& fiber) { free_.push_back(&fiber); }

bool Stacks::contain(const std::byte* address) const {
  return address >= memory_ && address < memory_ + kBytes;
}

Stacks& stacks() {
  static Stacks all;
  return all;
}

bool is_on_first_stack(const std::byte* address) {
  static const auto range = [] {
    pthread_attr_t attributes;
    void* start = nullptr;
    std::size_t size = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &start, &size);
    pthread_attr_destroy(&attributes);
    return std::pair{static_cast<const std::byte*>(start), size};
  }();
  return address >= range.first && address < range.first + range.second;
}

}  // namespace spillway::processor
