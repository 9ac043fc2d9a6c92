#include "um/host/managed/fault_signal.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "tests/um/host/managed_test_space.h"
#include "um/host/managed/page_mapper.h"
#include "um/host/managed/uffd_move.h"

namespace spillway::um {
namespace {

constexpr Bytes kPage = 4_KiB;

/// Opens a page to the thread that touched it, and records the address.
class PageOpener final : public FaultTarget {
 public:
  explicit PageOpener(Range page) : page_{page} {}
  [[nodiscard]] bool on_fault(const std::byte* address) noexcept override {
    last_ = address;
    if (is_its_programs_) return false;
    mprotect(page_.data(), page_.size(), PROT_READ | PROT_WRITE);
    return true;
  }
  /// Makes it report all later faults as the program's own.
  void disown() { is_its_programs_ = true; }
  [[nodiscard]] const std::byte* last() const { return last_; }

 private:
  Range page_;
  const std::byte* last_ = nullptr;
  bool is_its_programs_ = false;
};

class FaultSignal : public testing::Test {
 protected:
  void TearDown() override {
    release_addresses(ours);
    release_addresses(foreign);
  }
  static void touch(Range page, std::size_t at = 0) {
    *static_cast<volatile std::byte*>(&page[at]) = std::byte{1};
    std::atomic_signal_fence(std::memory_order::seq_cst);  // the handler wrote, too
  }

  Range ours = reserve_addresses(kPage, AddressAccess::kNone);
  Range foreign = reserve_addresses(kPage, AddressAccess::kNone);
};

sigjmp_buf after_foreign_fault;

void leave(int /*number*/) { siglongjmp(after_foreign_fault, 1); }

/// Restores the previous SIGSEGV handler at the end of a test.
class KeptHandler {
 public:
  KeptHandler() { sigaction(SIGSEGV, nullptr, &kept_); }
  KeptHandler(const KeptHandler&) = delete;
  KeptHandler& operator=(const KeptHandler&) = delete;
  ~KeptHandler() { sigaction(SIGSEGV, &kept_, nullptr); }

 private:
  struct sigaction kept_ {};
};

/// Installs a SIGSEGV handler of the program during its lifetime.
class OwnHandler {
 public:
  explicit OwnHandler(void (*handler)(int), int flags = 0) {
    struct sigaction own {};
    own.sa_handler = handler;
    own.sa_flags = flags;
    sigaction(SIGSEGV, &own, nullptr);
  }

 private:
  KeptHandler kept_;
};

TEST_F(FaultSignal, ReachesTheTargetOfTheAddress) {
  PageOpener opener{ours};
  const FaultRegistration registration{ours, opener};
  touch(ours, 77);
  EXPECT_EQ(opener.last(), &ours[77]);
  EXPECT_EQ(ours[77], std::byte{1});  // the access was retried
}

TEST_F(FaultSignal, IsNotForAChildProcess) {
  PageOpener opener{ours};
  const FaultRegistration registration{ours, opener};
  const pid_t child = fork();
  if (child == 0) {
    touch(ours);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_NE(status, 0);  // the child's end depends on the system or a sanitizer
  touch(ours);
  EXPECT_EQ(opener.last(), ours.data());
}

TEST_F(FaultSignal, SendsEachRangeToItsOwnTarget) {
  PageOpener first{ours};
  PageOpener second{foreign};
  const FaultRegistration one{ours, first};
  const FaultRegistration other{foreign, second};
  touch(foreign);
  EXPECT_EQ(first.last(), nullptr);
  EXPECT_EQ(second.last(), foreign.data());
}

TEST_F(FaultSignal, SendsTheFirstByteOfTheNextRangeToThatOne) {
  const Range both = reserve_addresses(2 * kPage, AddressAccess::kNone);
  PageOpener first{both.first(kPage.count())};
  PageOpener second{both.last(kPage.count())};
  const FaultRegistration one{both.first(kPage.count()), first};
  const FaultRegistration other{both.last(kPage.count()), second};
  touch(both, kPage.count());
  EXPECT_EQ(first.last(), nullptr);
  EXPECT_EQ(second.last(), &both[kPage.count()]);
  release_addresses(both);
}

TEST_F(FaultSignal, PassesForeignFaultsOnToTheHandlerBefore) {
  const OwnHandler own{leave, SA_NODEFER};
  PageOpener opener{ours};
  const FaultRegistration registration{ours, opener};
  if (sigsetjmp(after_foreign_fault, 1) == 0) {
    touch(foreign);
    FAIL() << "a page without access can be written";
  }
  EXPECT_EQ(opener.last(), nullptr);
  touch(ours);
  EXPECT_EQ(opener.last(), ours.data());
}

TEST_F(FaultSignal, GoesOnToTheHandlerBeforeWhereItsTargetSaysThatItIsTheProgramsOwn) {
  const OwnHandler own{leave, SA_NODEFER};
  PageOpener opener{ours};
  const FaultRegistration registration{ours, opener};
  opener.disown();
  if (sigsetjmp(after_foreign_fault, 1) == 0) {
    touch(ours);
    FAIL() << "nobody handled the fault";
  }
  EXPECT_EQ(opener.last(), ours.data());
}

struct sigaction before_theirs {};

void pass_on(int number, siginfo_t* info, void* context) {
  before_theirs.sa_sigaction(number, info, context);
}

TEST_F(FaultSignal, MayBePassedOnFromTheOrdinaryStackBelowASignalStack) {
  PageOpener opener{ours};
  const FaultRegistration registration{ours, opener};
  const KeptHandler kept;
  struct sigaction theirs {};
  theirs.sa_sigaction = pass_on;
  theirs.sa_flags = SA_SIGINFO | SA_NODEFER;  // without SA_ONSTACK
  sigaction(SIGSEGV, &theirs, &before_theirs);
  std::array<std::byte, 65536> above{};  // called functions use lower addresses
  stack_t signal_stack{};
  signal_stack.ss_sp = above.data();
  signal_stack.ss_size = above.size();
  stack_t before{};
  ASSERT_EQ(sigaltstack(&signal_stack, &before), 0);
  touch(ours);
  sigaltstack(&before, nullptr);
  EXPECT_EQ(opener.last(), ours.data());
}

volatile std::sig_atomic_t received = 0;

void count(int /*number*/) { received = received + 1; }

TEST_F(FaultSignal, PassesASignalThatAProcessSentOnWhateverAddressItShows) {
  const OwnHandler own{count};
  PageOpener opener{ours};
  const FaultRegistration registration{ours, opener};
  siginfo_t info{};
  info.si_signo = SIGSEGV;
  info.si_code = SI_QUEUE;
  info.si_addr = ours.data();  // this field holds the sender's pid and value instead
  received = 0;
  ASSERT_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGSEGV, &info), 0);
  EXPECT_EQ(received, 1);
  EXPECT_EQ(opener.last(), nullptr);
}

TEST_F(FaultSignal, AForeignFaultWithoutAHandlerEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto touch_foreign = [this] {
    signal(SIGSEGV, SIG_DFL);
    PageOpener opener{ours};
    const FaultRegistration registration{ours, opener};
    touch(foreign);
  };
  EXPECT_EXIT(touch_foreign(), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(FaultSignal, TheLastRegistrationPutsTheHandlerBeforeBack) {
  const OwnHandler own{leave};
  PageOpener opener{ours};
  {
    const FaultRegistration registration{ours, opener};
    const FaultRegistration another{foreign, opener};
  }
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  EXPECT_EQ(now.sa_handler, leave);
}

/// Opens a page to the thread that touched it, and records its handler's stack address.
class StackWatcher final : public FaultTarget {
 public:
  explicit StackWatcher(Range page) : page_{page} {}
  [[nodiscard]] bool on_fault(const std::byte* /*address*/) noexcept override {
    const int local = 0;
    stack_ = reinterpret_cast<std::uintptr_t>(&local);
    mprotect(page_.data(), page_.size(), PROT_READ | PROT_WRITE);
    return true;
  }
  [[nodiscard]] std::uintptr_t stack() const { return stack_; }

 private:
  Range page_;
  std::uintptr_t stack_ = 0;
};

TEST(FaultStack, IsWhereAFaultIsHandled) {
  const Range page = reserve_addresses(4_KiB, AddressAccess::kNone);
  StackWatcher watcher{page};
  const FaultRegistration registration{page, watcher};
  stack_t stack{};
  std::thread{[&] {
    make_fault_stack();
    make_fault_stack();  // a second call is a no-op
    sigaltstack(nullptr, &stack);
    *static_cast<volatile std::byte*>(page.data()) = std::byte{1};
  }}.join();
  const auto begin = reinterpret_cast<std::uintptr_t>(stack.ss_sp);
  EXPECT_GE(watcher.stack(), begin);
  EXPECT_LT(watcher.stack(), begin + stack.ss_size);
  release_addresses(page);
}

TEST(FaultStack, HasAPageBelowItThatNothingMayTouch) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto touch_below = [] {
    make_fault_stack();
    stack_t stack{};
    sigaltstack(nullptr, &stack);
    auto* const below = static_cast<std::byte*>(stack.ss_sp) - 4096;
    unsigned char is_near = 0;
    if (mincore(below, 4096, &is_near) != 0) return;  // not the stack's: perhaps a neighbour's
    signal(SIGSEGV, SIG_DFL);
    *static_cast<volatile std::byte*>(below) = std::byte{1};
  };
  EXPECT_EXIT(touch_below(), testing::KilledBySignal(SIGSEGV), "");
}

TEST(FaultStack, EndsWithItsThread) {
  stack_t before{};
  stack_t after{};
  std::thread{[&] {
    sigaltstack(nullptr, &before);
    make_fault_stack();
    sigaltstack(nullptr, &after);
  }}.join();
  EXPECT_NE(before.ss_sp, after.ss_sp);
  const int is_mapped = msync(after.ss_sp, 4096, MS_ASYNC);
  EXPECT_EQ(is_mapped, -1);  // freed
}

// --- signal stacks of the program

constexpr std::size_t kBeside =
    8192;  // the size that spillway_um.h requires of a signal stack, beside registers

std::size_t registers_size() { return static_cast<std::size_t>(sysconf(_SC_MINSIGSTKSZ)); }

/// Runs `work` in a thread with a signal stack of `size`. Returns true when nothing was written
/// below the stack.
bool keeps_to_stack(std::size_t size, const std::function<void()>& work) {
  constexpr std::size_t kBelow = 65536;
  std::vector<std::byte> memory(kBelow + size, std::byte{0x55});
  std::thread{[&] {
    stack_t theirs{};
    theirs.ss_sp = memory.data() + kBelow;
    theirs.ss_size = size;
    ASSERT_EQ(sigaltstack(&theirs, nullptr), 0);
    work();
    theirs.ss_flags = SS_DISABLE;
    sigaltstack(&theirs, nullptr);
  }}.join();
  return std::ranges::count(memory.begin(), memory.begin() + kBelow, std::byte{0x55}) == kBelow;
}

ManagedTestSpace* space_of_handler = nullptr;
std::uint64_t sum_of_handler = 0;
std::size_t page_of_handler = 0;

void touch_in_handler(int /*signal*/) { sum_of_handler += space_of_handler->word(page_of_handler); }

/// Eight pages with room for two near, for threads with the program's own signal stacks.
class SignalStack : public testing::TestWithParam<Paging> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers take more of a stack";
#endif
    const auto reason = probe_uffd_move();
    if (reason && GetParam() == Paging::kUffdMove) GTEST_SKIP() << *reason;
    space.emplace(ManagedOptions{.size = kPages * 64_KiB,
                                 .near = 128_KiB,
                                 .page = 64_KiB,
                                 .paging = GetParam(),
                                 .writes_are_declared = false},
                  128_KiB);
  }
  void touch_all() {
    for (std::size_t page = 0; page < kPages; ++page) space->word(page) = page + 1;
  }

  static constexpr std::size_t kPages = 8;
  std::optional<ManagedTestSpace> space;
};

INSTANTIATE_TEST_SUITE_P(Paging, SignalStack,
                         testing::Values(Paging::kUffdMove, Paging::kMemfdSegv),
                         [](const auto& way) {
                           return way.param == Paging::kUffdMove ? "Uffd" : "Memfd";
                         });

TEST_P(SignalStack, OfTheLeastSizeHoldsAFault) {
  EXPECT_TRUE(keeps_to_stack(registers_size() + kBeside, [&] { touch_all(); }));
}

// Registers are saved twice: for the program's handler and for ours.
TEST_P(SignalStack, OfTheLeastSizeHoldsAFaultInAHandlerOfTheProgram) {
  struct sigaction theirs {};
  struct sigaction before {};
  theirs.sa_handler = touch_in_handler;
  theirs.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &theirs, &before);
  touch_all();
  space_of_handler = &*space;
  sum_of_handler = 0;
  EXPECT_TRUE(keeps_to_stack(2 * registers_size() + kBeside, [] {
    for (page_of_handler = 0; page_of_handler < kPages; ++page_of_handler) {
      pthread_kill(pthread_self(), SIGUSR1);
    }
  }));
  EXPECT_EQ(sum_of_handler, 36U);  // 1 + 2 + ... + 8
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(SignalStack, OfTheLeastSizeHoldsTheLastSentenceOnFarMemoryThatFails) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto read_back = [&] {
    touch_all();
    space->far().fails_to_read = true;
    static_cast<void>(keeps_to_stack(registers_size() + kBeside, [&] { touch_all(); }));
  };
  EXPECT_DEATH(read_back(),
               "a page fault cannot be resolved: the test's far memory cannot be read");
}

std::uintptr_t frame_of_handler = 0;

void note_frame(int /*signal*/) {
  frame_of_handler = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

/// Returns the bytes that a signal puts on a stack before its handler begins. This is less than
/// registers_size() if the process does not use all registers, such as AMX's tiles.
std::size_t frame_size() {
  struct sigaction theirs {};
  struct sigaction before {};
  theirs.sa_handler = note_frame;
  theirs.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &theirs, &before);
  stack_t stack{};
  static_cast<void>(keeps_to_stack(4 * registers_size() + kBeside, [&] {
    sigaltstack(nullptr, &stack);
    pthread_kill(pthread_self(), SIGUSR1);
  }));
  sigaction(SIGUSR1, &before, nullptr);
  return reinterpret_cast<std::uintptr_t>(stack.ss_sp) + stack.ss_size - frame_of_handler;
}

TEST_P(SignalStack, ThatIsTooSmallEndsTheProcessWithASentence) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fault = [&] {
    static_cast<void>(keeps_to_stack(frame_size() + 1024, [&] { touch_all(); }));
  };
  EXPECT_DEATH(fault(),
               "a page fault finds too little left of the thread's signal stack: give "
               "sigaltstack\\(\\) at least sysconf\\(_SC_MINSIGSTKSZ\\) . 8 KiB");
}

}  // namespace
}  // namespace spillway::um
