#include "um/host/fault_stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include "um/error.h"

namespace spillway::um {
namespace {

constexpr std::size_t kForHandlers = 256U << 10U;  // beside the registers that the kernel saves

std::size_t stack_size() {
#ifdef _SC_MINSIGSTKSZ
  const long registers = sysconf(_SC_MINSIGSTKSZ);  // 11 KiB with AMX's tiles
  return kForHandlers + static_cast<std::size_t>(std::max(registers, 0L));
#else
  return kForHandlers + MINSIGSTKSZ;
#endif
}

class FaultStack {
 public:
  FaultStack() : size_{stack_size()} {
    constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, kPrivate, -1, 0);
    if (memory_ == MAP_FAILED) {
      throw OutOfMemory{"there is no memory for the stack of a page-fault handler"};
    }
    stack_t ours{};
    ours.ss_sp = memory_;
    ours.ss_size = size_;
    expects(sigaltstack(&ours, &previous_) == 0, "a signal stack of a valid size");
  }
  FaultStack(const FaultStack&) = delete;
  FaultStack& operator=(const FaultStack&) = delete;
  ~FaultStack() {
    sigaltstack(&previous_, nullptr);
    munmap(memory_, size_);
  }

 private:
  std::size_t size_;
  void* memory_ = nullptr;
  stack_t previous_{};  // a sanitizer's, perhaps
};

}  // namespace

void make_fault_stack() { static thread_local const FaultStack stack; }

}  // namespace spillway::um
