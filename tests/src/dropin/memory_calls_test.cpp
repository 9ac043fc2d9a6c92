// What the system's calls on memory do to a space's, as spillway_um.h says: each statement there
// has a test here.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <string>

#include "tests/src/dropin/space_of_c.h"

namespace spillway::dropin {
namespace {

sigjmp_buf before_the_touch;
void leave(int number) { siglongjmp(before_the_touch, number); }

/// The signal that a touch of `address` raises for the program; 0: none.
enum class Touch : std::uint8_t { kRead, kWrite };
int signal_of(Touch touch, std::byte* address) {
  const int number = sigsetjmp(before_the_touch, 1);
  if (number != 0) return number;
  volatile std::byte* const touched = address;
  if (touch == Touch::kRead) {
    static_cast<void>(*touched);
  } else {
    *touched = *touched;
  }
  return 0;
}

/// Sixteen pages with content, of which four may be near, and a program that handles SIGSEGV and
/// SIGBUS itself. For each kind of paging.
class MemoryCalls : public SpaceOfC, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "TSan takes mapping a page anew for a write";
#endif
    struct sigaction theirs {};
    theirs.sa_handler = leave;
    theirs.sa_flags = SA_NODEFER;
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &theirs, &kept_[i]);
    spillway_um_options wanted = options();
    wanted.paging = GetParam();
    if (spillway_um_create(&wanted, &space) != SPILLWAY_UM_OK) {
      GTEST_SKIP() << spillway_um_last_error();
    }
    block = take(kPages * kPage);
    for (std::size_t i = 0; i < kPages; ++i) std::memset(page(i), content(i), kPage);
  }
  void TearDown() override {
    SpaceOfC::TearDown();
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &kept_[i], nullptr);
  }

  static constexpr std::size_t kPages = 16;
  [[nodiscard]] std::byte* page(std::size_t i) const { return block + i * kPage; }
  static int content(std::size_t i) { return static_cast<int>(i + 1); }

  void bring(std::size_t i) const {
    ASSERT_EQ(spillway_um_prefetch(space, page(i), kPage), SPILLWAY_UM_OK);
    ASSERT_EQ(spillway_um_synchronize(space), SPILLWAY_UM_OK) << spillway_um_last_error();
    ASSERT_EQ(near_bytes(page(i), kPage), kPage);
  }
  void send(std::size_t i) const {
    ASSERT_EQ(spillway_um_offload(space, page(i), kPage), SPILLWAY_UM_OK);
    ASSERT_EQ(spillway_um_synchronize(space), SPILLWAY_UM_OK) << spillway_um_last_error();
    ASSERT_EQ(near_bytes(page(i), kPage), 0U);
  }
  /// Every page comes near and leaves again, by touches.
  void expect_content() const {
    for (std::size_t i = 0; i < kPages; ++i) {
      for (std::size_t at = 0; at < kPage; at += 4096) {
        ASSERT_EQ(page(i)[at], static_cast<std::byte>(content(i))) << i << " + " << at;
      }
    }
  }

  std::byte* block = nullptr;

 private:
  static constexpr std::array kSignals{SIGSEGV, SIGBUS};
  std::array<struct sigaction, kSignals.size()> kept_{};
};

std::string name_of(const testing::TestParamInfo<int>& info) {
  return info.param == SPILLWAY_UM_PAGING_UFFD ? "Uffd" : "Memfd";
}

INSTANTIATE_TEST_SUITE_P(Paging, MemoryCalls,
                         testing::Values(SPILLWAY_UM_PAGING_UFFD, SPILLWAY_UM_PAGING_MEMFD),
                         name_of);

// --- mlock

// The system's own: AddressSanitizer's mlock() does nothing.
long lock_in_memory(const void* address, std::size_t size) {
  return syscall(SYS_mlock, address, size);
}

TEST_P(MemoryCalls, MlockOfNearPagesEndsWhenTheyMove) {
  bring(3);
  EXPECT_EQ(lock_in_memory(page(3), 8192), 0);
  send(3);
  bring(3);
  expect_content();
  EXPECT_EQ(syscall(SYS_munlock, page(3), 8192), 0);
}

TEST_P(MemoryCalls, MlockOfWhatIsFarFailsAndChangesNothing) {
  send(3);
  EXPECT_EQ(lock_in_memory(page(3), 2 * kPage), -1);
  EXPECT_EQ(errno, ENOMEM);
  bring(3);
  send(3);
  expect_content();
}

// --- mprotect

TEST_P(MemoryCalls, MprotectHoldsWhileAPageStaysNear) {
  bring(3);
  ASSERT_EQ(mprotect(page(3), kPage, PROT_READ), 0);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(signal_of(Touch::kRead, page(3)), 0);
    EXPECT_EQ(signal_of(Touch::kWrite, page(3)), SIGSEGV);
  }
  ASSERT_EQ(mprotect(page(3), kPage, PROT_NONE), 0);
  EXPECT_EQ(signal_of(Touch::kRead, page(3)), SIGSEGV);
  ASSERT_EQ(mprotect(page(3), kPage, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(signal_of(Touch::kWrite, page(3)), 0);
  expect_content();
}

TEST_P(MemoryCalls, MprotectEndsWhenAPageMoves) {
  bring(3);
  ASSERT_EQ(mprotect(page(3), 4096, PROT_NONE), 0);  // a part of a page, too
  send(3);
  EXPECT_EQ(signal_of(Touch::kWrite, page(3)), 0);
  expect_content();
}

TEST_P(MemoryCalls, MprotectOfWhatIsFarShowsItsContentAndNoZeros) {
  for (const int access : {PROT_READ | PROT_WRITE, PROT_READ}) {
    send(3);
    ASSERT_EQ(mprotect(page(3), kPage, access), 0);
    EXPECT_EQ(page(3)[77], static_cast<std::byte>(content(3)));
  }
  expect_content();
}

// --- mremap, munmap

TEST_P(MemoryCalls, MremapTakesAPartAwayUntilItIsBack) {
  bring(3);
  send(4);
  void* const other = mmap(nullptr, 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (const std::size_t i : {3U, 4U}) {  // mapped apart by memfd
    ASSERT_NE(mremap(page(i), kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED,
                     static_cast<std::byte*>(other) + (i - 3) * kPage),
              MAP_FAILED);
  }
  auto* const moved = static_cast<std::byte*>(other);
  EXPECT_EQ(moved[77], static_cast<std::byte>(content(3)));  // was near
  EXPECT_NE(signal_of(Touch::kRead, moved + kPage), 0);      // was far
  EXPECT_EQ(signal_of(Touch::kRead, page(3)), SIGSEGV);      // is not mapped
  for (const std::size_t i : {3U, 4U}) {
    ASSERT_NE(mremap(moved + (i - 3) * kPage, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, page(i)),
              MAP_FAILED);
  }
  send(3);
  bring(4);
  expect_content();
}

TEST_P(MemoryCalls, WhatIsNotAtItsPlaceEndsTheProcessWithASentenceWhenItIsToMove) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto offload_what_is_gone = [this](bool is_moved) {
    bring(3);
    if (is_moved) {
      static_cast<void>(
          mremap(page(3), kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED,
                 mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
    } else {
      munmap(page(3), kPage);
    }
    send(3);
  };
  const std::string sentence = "moved or unmapped by mremap or munmap; its place is fixed: copy";
  EXPECT_DEATH(offload_what_is_gone(true), sentence);
  EXPECT_DEATH(offload_what_is_gone(false), sentence);
}

// --- fork

TEST_P(MemoryCalls, AChildHasNoneOfIt) {
  send(4);
  for (const std::size_t i : {3U, 4U}) {
    if (i == 3) bring(3);
    const pid_t child = fork();
    if (child == 0) _exit(signal_of(Touch::kWrite, page(i)));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), SIGSEGV);
  }
  expect_content();
}

TEST_P(MemoryCalls, MadviseThatGivesAChildACopyLetsTheParentGoOn) {
  for (std::size_t i = 0; i < 3; ++i) bring(i);
  ASSERT_EQ(madvise(block, kPages * kPage, MADV_DOFORK), 0);
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    char end = 0;
    close(pipe_ends[1]);
    _exit(static_cast<int>(read(pipe_ends[0], &end, 1)));
  }
  close(pipe_ends[0]);
  expect_content();
  close(pipe_ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// --- madvise

TEST_P(MemoryCalls, MadviseAboutTimesChangesNoContent) {
  for (const int advice : {MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_RANDOM, MADV_SEQUENTIAL,
                           MADV_WILLNEED, MADV_DONTDUMP, MADV_COLD, MADV_PAGEOUT}) {
    bring(3);
    static_cast<void>(madvise(page(3) + 4096, 4096, advice));  // a part of a page, and all of it
    send(3);
    static_cast<void>(madvise(block, kPages * kPage, advice));
    bring(3);
    expect_content();
  }
}

TEST_P(MemoryCalls, MadviseThatDropsPagesMayMakeTheNearOnesZerosAndNoOthers) {
  for (const bool is_touched : {true, false}) {
    for (std::size_t i = 0; i < kPages; ++i) std::memset(page(i), content(i), kPage);
    send(4);
    bring(3);
    ASSERT_EQ(madvise(page(3) + 8192, 2 * kPage - 8192, MADV_DONTNEED), 0);
    if (is_touched) {
      for (std::size_t at = 8192; at < kPage; at += 4096) {
        const auto value = std::to_integer<int>(page(3)[at]);
        EXPECT_TRUE(value == 0 || value == content(3)) << value;
      }
    }
    send(3);
    bring(3);
    EXPECT_EQ(page(3)[77], static_cast<std::byte>(content(3)));
    std::memset(page(3), content(3), kPage);
    expect_content();
  }
}

}  // namespace
}  // namespace spillway::dropin
