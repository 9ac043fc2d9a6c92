#include "tests/src/cuda/processor/fiber.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "um/error.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace spillway::processor {
namespace {

#ifdef __SANITIZE_ADDRESS__
void leave_stack(void** shadow, const void* next, std::size_t bytes) {
  __sanitizer_start_switch_fiber(shadow, next, bytes);
}
void arrive(void* shadow, const void** last, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(shadow, last, bytes);
}
void forget_frames(std::byte* stack) { ASAN_UNPOISON_MEMORY_REGION(stack, Fiber::kStackBytes); }
#else
void leave_stack(void** /*shadow*/, const void* /*next*/, std::size_t /*bytes*/) {}
void arrive(void* /*shadow*/, const void** /*last*/, std::size_t* /*bytes*/) {}
void forget_frames(std::byte* /*stack*/) {}
#endif

constexpr std::size_t kBytes = kMaxThreads * Fiber::kStackBytes;

}  // namespace

void Fiber::start(const std::function<void()>& body) {
  body_ = &body;
  if (is_idle_) return;
  forget_frames(stack_);
  shadow_of_own_ = nullptr;
  has_entered_ = false;
  getcontext(&first_);
  first_.uc_stack.ss_sp = stack_;
  first_.uc_stack.ss_size = kStackBytes;
  first_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&first_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(self >> 32U), static_cast<unsigned>(self));
}

void Fiber::resume() {
  void* shadow = nullptr;
  leave_stack(&shadow, stack_, kStackBytes);
  if (_setjmp(caller_) == 0) {
    is_idle_ = false;
    if (has_entered_) std::longjmp(own_, 1);
    has_entered_ = true;
    setcontext(&first_);
  }
  arrive(shadow, nullptr, nullptr);
}

void Fiber::pause() {
  leave_stack(&shadow_of_own_, stack_of_caller_, bytes_of_caller_);
  if (_setjmp(own_) == 0) std::longjmp(caller_, 1);
  arrive(shadow_of_own_, &stack_of_caller_, &bytes_of_caller_);
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* const self = reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(high) << 32U | low);
  arrive(nullptr, &self->stack_of_caller_, &self->bytes_of_caller_);
  for (;;) {
    (*self->body_)();
    self->is_idle_ = true;
    self->pause();
  }
}

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
