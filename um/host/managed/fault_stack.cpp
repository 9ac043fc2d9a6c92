#include "um/host/managed/fault_stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include "um/error.h"

namespace spillway::um {
namespace {

constexpr std::size_t kGuard = 64U << 10U;         // no page of any Linux is larger
constexpr std::size_t kForHandlers = 256U << 10U;  // beside the registers that the kernel saves

constexpr const char* kNoStack = "cannot make a stack for page-fault handlers";

/// A multiple of 64 KiB.
std::size_t stack_size() {
#ifdef _SC_MINSIGSTKSZ
  const long registers = sysconf(_SC_MINSIGSTKSZ);  // 11 KiB with AMX's tiles
#else
  const long registers = MINSIGSTKSZ;
#endif
  const auto size = kForHandlers + static_cast<std::size_t>(std::max(registers, 0L));
  return (size + kGuard - 1) / kGuard * kGuard;
}

class FaultStack {
 public:
  FaultStack() : mapped_{kGuard + stack_size()} {
    constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;
    memory_ = mmap(nullptr, mapped_, PROT_NONE, kPrivate, -1, 0);
    if (memory_ == MAP_FAILED) throw system_error(kNoStack, errno);
    stack_t ours{};
    ours.ss_sp = static_cast<std::byte*>(memory_) + kGuard;
    ours.ss_size = mapped_ - kGuard;
    if (mprotect(ours.ss_sp, ours.ss_size, PROT_READ | PROT_WRITE) != 0 ||
        sigaltstack(&ours, &previous_) != 0) {
      const int reason = errno;
      munmap(memory_, mapped_);
      throw system_error(kNoStack, reason);
    }
  }
  FaultStack(const FaultStack&) = delete;
  FaultStack& operator=(const FaultStack&) = delete;
  ~FaultStack() {
    sigaltstack(&previous_, nullptr);
    munmap(memory_, mapped_);
  }

 private:
  std::size_t mapped_;  // with the guard, which a handler that needs too much runs into
  void* memory_ = nullptr;
  stack_t previous_{};  // a sanitizer's, perhaps
};

}  // namespace

void make_fault_stack() { static thread_local const FaultStack stack; }

}  // namespace spillway::um
