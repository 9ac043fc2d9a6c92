#include "um/host/managed/fault_signal.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>

#include "um/host/managed/address_space.h"

namespace spillway::um {
namespace {

constexpr Bytes kPage = 4_KiB;

/// Opens a page to the thread that touched it, and remembers what was touched.
class PageOpener final : public FaultTarget {
 public:
  explicit PageOpener(Range page) : page_{page} {}
  [[nodiscard]] bool on_fault(const std::byte* address) noexcept override {
    last_ = address;
    if (is_its_programs_) return false;
    mprotect(page_.data(), page_.size(), PROT_READ | PROT_WRITE);
    return true;
  }
  /// From now on it says that faults are the program's.
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

/// Puts back the handler of SIGSEGV that a test found.
class KeptHandler {
 public:
  KeptHandler() { sigaction(SIGSEGV, nullptr, &kept_); }
  KeptHandler(const KeptHandler&) = delete;
  KeptHandler& operator=(const KeptHandler&) = delete;
  ~KeptHandler() { sigaction(SIGSEGV, &kept_, nullptr); }

 private:
  struct sigaction kept_ {};
};

/// A handler of SIGSEGV of the program's own, in its place as long as this lives.
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
  EXPECT_EQ(ours[77], std::byte{1});  // the touch was done again
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
  EXPECT_NE(status, 0);  // what became of the child is the system's, or a sanitizer's
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
  theirs.sa_flags = SA_SIGINFO | SA_NODEFER;  // and not SA_ONSTACK
  sigaction(SIGSEGV, &theirs, &before_theirs);
  std::array<std::byte, 65536> above{};  // what is called from here lies at lower addresses
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
  info.si_addr = ours.data();  // where the sender's number and value lie
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

}  // namespace
}  // namespace spillway::um
