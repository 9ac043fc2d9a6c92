#include "tests/src/cuda/processor/fiber.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "um/error.h"

namespace spillway::processor {
namespace {

// Threads that take turns at one depth would share a set of the cache if stacks began at multiples
// of a power of two.
constexpr std::size_t kStride = Fiber::kStackBytes + 17 * 64;
constexpr std::size_t kBytes = kMaxThreads * kStride;

thread_local Fiber* entering = nullptr;  // of the last resume()

}  // namespace

// The system's contexts take two calls of the system for each switch.
#ifdef __x86_64__

extern "C" [[gnu::visibility("hidden")]] void spillway_switch_stack(void** from, void* to);

// Keeps the registers that a function must keep on its stack, and takes those of the other one.
asm(R"(
  .text
  .hidden spillway_switch_stack
  .type spillway_switch_stack, @function
spillway_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size spillway_switch_stack, . - spillway_switch_stack
)");

void Fiber::go(Continuation& from, Continuation& to) {
  spillway_switch_stack(&from.pointer, to.pointer);
}

void Fiber::prepare() {
  constexpr std::size_t kRegisters = 6;
  auto** const top = reinterpret_cast<void**>(stack_ + kStackBytes);
  void** const first = top - kRegisters - 2;  // the registers, enter(), and where it would return
  std::fill(first, top, nullptr);
  first[kRegisters] = reinterpret_cast<void*>(&Fiber::enter);
  own_.pointer = first;
}

#else

void Fiber::go(Continuation& from, Continuation& to) { swapcontext(&from.context, &to.context); }

void Fiber::prepare() {
  getcontext(&own_.context);
  own_.context.uc_stack.ss_sp = stack_;
  own_.context.uc_stack.ss_size = kStackBytes;
  own_.context.uc_link = nullptr;
  makecontext(&own_.context, &Fiber::enter, 0);
}

#endif

void Fiber::start(const std::function<void()>& body) {
  body_ = &body;
  if (!is_idle_) prepare();
}

thread_local Fiber::Continuation Fiber::caller;

void Fiber::resume() {
  is_idle_ = false;
  entering = this;
  go(caller, own_);
}

void Fiber::pause() { go(own_, caller); }

void Fiber::pause_for(Fiber& other) { go(own_, other.own_); }

void Fiber::enter() {
  Fiber& self = *entering;
  for (;;) {
    (*self.body_)();
    self.is_idle_ = true;
    self.pause();
  }
}

Stacks::Stacks()
    : memory_{static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))} {
  um::expects(memory_ != MAP_FAILED, "there is memory for the stacks of a block's threads");
  for (std::size_t i = 0; i < kMaxThreads; ++i) {
    free_.push_back(&fibers_.emplace_back(memory_ + i * kStride));
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
