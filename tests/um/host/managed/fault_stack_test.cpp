#include "um/host/managed/fault_stack.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "tests/um/host/managed_test_space.h"
#include "um/host/managed/address_space.h"
#include "um/host/managed/fault_signal.h"
#include "um/host/managed/uffd_probe.h"

namespace spillway::um {
namespace {

/// Opens a page to the thread that touched it, and remembers where its own variables were.
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
    make_fault_stack();  // once more does nothing
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
    if (mincore(below, 4096, &is_near) != 0) return;  // not the stack's: a neighbour's some day
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
  EXPECT_EQ(is_mapped, -1);  // given back
}

// --- signal stacks of the program's

constexpr std::size_t kBeside =
    8192;  // what spillway_um.h says of a signal stack, beside registers

std::size_t registers_size() { return static_cast<std::size_t>(sysconf(_SC_MINSIGSTKSZ)); }

/// Does `work` in a thread with a signal stack of this size. True: nothing was written below it.
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

/// Eight pages, of which two may be near, for threads with signal stacks of the program's.
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

// Registers are saved twice: for the program's handler, and for ours.
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

/// Returns the bytes that a signal takes of a stack before its handler begins: fewer than
/// registers_size() where the process does not use all registers, as AMX's tiles.
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
