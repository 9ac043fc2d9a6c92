#include "um/host/managed/fault_signal.h"

#include <pthread.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
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

}  // namespace spillway::um
