#include "um/host/managed/fault_stack.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>
#include <cstdint>
#include <thread>

#include "um/host/managed/address_space.h"
#include "um/host/managed/fault_signal.h"

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

}  // namespace
}  // namespace spillway::um
