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

// A fault was seen to use 500 bytes of a signal stack, beside the kernel's frame, and may use 2
// KiB. The memory below the stack belongs to the program.
constexpr std::uintptr_t kLeastStack = 4096;
constexpr std::string_view kSmallStack =
    "a page fault finds too little left of the thread's signal stack: give sigaltstack() at least "
    "sysconf(_SC_MINSIGSTKSZ) + 8 KiB, and sysconf(_SC_MINSIGSTKSZ) more for each handler of the "
    "program's that touches managed memory";

struct Entry {
  std::atomic<FaultTarget*> target{nullptr};  // null: unused
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
};

// The signal handlers belong to the process, and so does their state.
struct Handlers {
  std::mutex mutex;  // serializes registrations; the handler takes no lock
  std::array<Entry, kMaxRanges> entries;
  std::array<struct sigaction, kSignals.size()> previous{};
  std::array<bool, kSignals.size()> is_installed{};
  std::size_t registrations = 0;
  bool forgets_in_children = false;
};
Handlers handlers;

// A child of fork() inherits these entries but no managed memory: its mappings are gone, and the
// mechanism behind them still belongs to the parent.
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
  } else {  // the instruction runs again and ends the process, as without our handler
    signal(number, SIG_DFL);
    if (is_sent_by_a_process(*info)) raise(number);  // no instruction will raise it again
  }
}

/// Returns null for an unregistered address and for a sent signal, which has no address.
FaultTarget* target_of(const siginfo_t& info) {
  if (is_sent_by_a_process(info)) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  for (const Entry& entry : handlers.entries) {
    FaultTarget* const target = entry.target.load();
    if (target != nullptr && entry.begin <= address && address < entry.end) return target;
  }
  return nullptr;
}

/// Returns whether the handler runs on the program's signal stack with little space left. Another
/// handler may have forwarded the fault from the thread's ordinary stack.
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
    // Saves the old handler before the first signal can arrive.
    if (sigaction(kSignals[i], nullptr, &handlers.previous[i]) != 0 ||
        sigaction(kSignals[i], &ours, nullptr) != 0) {
      throw system_error("cannot handle page faults by a signal", errno);
    }
    handlers.is_installed[i] = true;
  }
}

/// Keeps a handler in place if a later handler was installed on top of it and may forward to it.
void uninstall() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction current {};
    sigaction(kSignals[i], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) == 0 || current.sa_sigaction != on_signal) continue;
    sigaction(kSignals[i], &handlers.previous[i], nullptr);
    handlers.is_installed[i] = false;
  }
}

constexpr std::size_t kGuard = 64U << 10U;         // at least the page size of any Linux
constexpr std::size_t kForHandlers = 256U << 10U;  // beside the registers that the kernel saves

constexpr const char* kNoStack = "cannot make a stack for page-fault handlers";

/// Returns a multiple of 64 KiB.
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
  std::size_t mapped_;  // includes the guard pages, which catch an overflow
  void* memory_ = nullptr;
  stack_t previous_{};  // perhaps of a sanitizer
};

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

void make_fault_stack() { static thread_local const FaultStack stack; }

}  // namespace spillway::um
