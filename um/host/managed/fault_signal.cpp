#include "um/host/managed/fault_signal.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "um/error.h"
#include "um/host/managed/fatal.h"

namespace spillway::um {
namespace {

constexpr std::size_t kMaxRanges = 64;
constexpr std::array kSignals{SIGBUS, SIGSEGV};

// A fault has been seen to take 500 bytes of a signal stack, beside what the kernel saves there,
// and may take 2 KiB. Memory below the stack is the program's.
constexpr std::uintptr_t kLeastStack = 4096;
constexpr std::string_view kSmallStack =
    "a page fault finds too little left of the thread's signal stack: give sigaltstack() at least "
    "sysconf(_SC_MINSIGSTKSZ) + 8 KiB, and sysconf(_SC_MINSIGSTKSZ) more for each handler of the "
    "program's that touches managed memory";

struct Entry {
  std::atomic<FaultTarget*> target{nullptr};  // null: the entry is free
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
};

// A signal's handler belongs to the process, not to an object: so does all it needs.
struct Handlers {
  std::mutex mutex;  // for those who register; the handler takes no lock
  std::array<Entry, kMaxRanges> entries;
  std::array<struct sigaction, kSignals.size()> previous{};
  std::array<bool, kSignals.size()> is_installed{};
  std::size_t registrations = 0;
  bool forgets_in_children = false;
};
Handlers handlers;

// A child of fork() has no managed memory, though a copy of these entries: its mappings are not
// inherited, and the mechanism behind them is still its parent's.
void forget_in_children() {
  if (handlers.forgets_in_children) return;
  const int failure = pthread_atfork([] { handlers.mutex.lock(); }, [] { handlers.mutex.unlock(); },
                                     [] {
                                       for (Entry& entry : handlers.entries) entry.target = nullptr;
                                       handlers.mutex.unlock();
                                     });
  if (failure != 0) throw system_error("cannot prepare page faults for fork", failure);
  handlers.forgets_in_children = true;
}

bool is_sent_by_a_process(const siginfo_t& info) { return info.si_code <= 0; }

void pass_on(int number, siginfo_t* info, void* context) {
  const struct sigaction& previous = handlers.previous[number == kSignals[0] ? 0 : 1];
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  } else {  // the instruction runs again and ends the process, as it would have without us
    signal(number, SIG_DFL);
    if (is_sent_by_a_process(*info)) raise(number);  // no instruction will do it
  }
}

/// Null for an address of nobody's, and for a signal that was sent: it has no address.
FaultTarget* target_of(const siginfo_t& info) {
  if (is_sent_by_a_process(info)) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  for (const Entry& entry : handlers.entries) {
    FaultTarget* const target = entry.target.load();
    if (target != nullptr && entry.begin <= address && address < entry.end) return target;
  }
  return nullptr;
}

/// Whether the handler runs on a signal stack of the program's and little of it is left. A handler
/// of the program's may have passed the fault on from the thread's ordinary stack.
bool lacks_stack(const void* context) {
  const stack_t& stack = static_cast<const ucontext_t*>(context)->uc_stack;
  if ((stack.ss_flags & SS_DISABLE) != 0) return false;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto begin = reinterpret_cast<std::uintptr_t>(stack.ss_sp);
  const bool is_on_it = begin <= here && here - begin < stack.ss_size;
  return is_on_it && here - begin < kLeastStack;
}

void on_signal(int number, siginfo_t* info, void* context) {
  const int kept_errno = errno;
  FaultTarget* const target = target_of(*info);
  if (target != nullptr && lacks_stack(context)) fatal(kSmallStack);
  if (target == nullptr || !target->on_fault(static_cast<const std::byte*>(info->si_addr))) {
    pass_on(number, info, context);
  }
  errno = kept_errno;
}

void install() {
  struct sigaction ours {};
  ours.sa_sigaction = on_signal;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (handlers.is_installed[i]) continue;
    // What was there is known before the first signal comes.
    if (sigaction(kSignals[i], nullptr, &handlers.previous[i]) != 0 ||
        sigaction(kSignals[i], &ours, nullptr) != 0) {
      throw system_error("cannot handle page faults by a signal", errno);
    }
    handlers.is_installed[i] = true;
  }
}

/// Leaves a handler in place that another one was put on top of: that one may still pass on to it.
void uninstall() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction current {};
    sigaction(kSignals[i], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) == 0 || current.sa_sigaction != on_signal) continue;
    sigaction(kSignals[i], &handlers.previous[i], nullptr);
    handlers.is_installed[i] = false;
  }
}

}  // namespace

FaultRegistration::FaultRegistration(Range range, FaultTarget& target) {
  const std::lock_guard lock{handlers.mutex};
  while (entry_ < kMaxRanges && handlers.entries[entry_].target != nullptr) ++entry_;
  if (entry_ == kMaxRanges) {
    throw Error{"64 managed memories are in use already; end one before another is made"};
  }
  forget_in_children();
  if (handlers.registrations == 0) install();
  ++handlers.registrations;
  Entry& entry = handlers.entries[entry_];
  entry.begin = reinterpret_cast<std::uintptr_t>(range.data());
  entry.end = reinterpret_cast<std::uintptr_t>(range.data() + range.size());
  entry.target = &target;
}

FaultRegistration::~FaultRegistration() {
  const std::lock_guard lock{handlers.mutex};
  handlers.entries[entry_].target = nullptr;
  if (--handlers.registrations == 0) uninstall();
}

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
