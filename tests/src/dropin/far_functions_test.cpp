#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/src/dropin/space_of_c.h"
#include "tests/temporary_folder.h"

namespace spillway::dropin {
namespace {

constexpr std::size_t kBlock = SPILLWAY_UM_FAR_ALIGNMENT;

struct Freed {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Aligned = std::unique_ptr<std::byte, Freed>;

/// Returns ordinary memory with the alignment of far copies.
Aligned aligned(std::size_t bytes, int value) {
  Aligned made{static_cast<std::byte*>(std::aligned_alloc(kBlock, bytes))};
  std::fill_n(made.get(), bytes, std::byte(value));
  return made;
}

bool holds(const Aligned& memory, std::size_t bytes, int value) {
  return std::all_of(memory.get(), memory.get() + bytes,
                     [&](std::byte each) { return each == std::byte(value); });
}

class FarAlone : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const std::string path = folder_.path().string();
    ASSERT_EQ(spillway_um_far_create(GetParam() ? path.c_str() : nullptr, 64 * kBlock, &far),
              SPILLWAY_UM_OK)
        << spillway_um_last_error();
  }
  void TearDown() override { spillway_um_far_destroy(far); }

  test::TemporaryFolder folder_;
  spillway_um_far far{};
};

INSTANTIATE_TEST_SUITE_P(RamAndFile, FarAlone, testing::Bool(),
                         [](const auto& which) { return which.param ? "File" : "Ram"; });

TEST_P(FarAlone, KeepsWhatThreadsWriteAtTheSameTime) {
  std::vector<std::thread> threads;
  std::vector<int> failures(8, 0);
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      const Aligned from = aligned(8 * kBlock, number);
      const Aligned to = aligned(8 * kBlock, 99);
      const std::uint64_t offset = number * 8 * kBlock;
      const bool is_kept =
          spillway_um_far_write(far, offset, from.get(), 8 * kBlock) == SPILLWAY_UM_OK &&
          spillway_um_far_read(far, offset, to.get(), 8 * kBlock) == SPILLWAY_UM_OK &&
          holds(to, 8 * kBlock, number);
      failures[number] = is_kept ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(8, 0));
}

TEST_P(FarAlone, RefusesWhatItCannotCopy) {
  const Aligned memory = aligned(2 * kBlock, 1);
  std::byte* const at = memory.get();
  expect_refused(spillway_um_far_write(far, 1, at, kBlock), SPILLWAY_UM_INVALID_ARGUMENT,
                 "offset 1 is no multiple of 4096");
  expect_refused(spillway_um_far_write(far, 0, at, 5), SPILLWAY_UM_INVALID_ARGUMENT,
                 "size 5 is no multiple");
  expect_refused(spillway_um_far_read(far, 0, at + 64, kBlock), SPILLWAY_UM_INVALID_ARGUMENT,
                 "is no multiple of 4096");
  expect_refused(spillway_um_far_read(far, 0, nullptr, kBlock), SPILLWAY_UM_INVALID_ARGUMENT,
                 "the address is NULL");
  for (const std::uint64_t offset : {63 * kBlock, 64 * kBlock, SIZE_MAX - kBlock + 1}) {
    expect_refused(spillway_um_far_read(far, offset, at, 2 * kBlock), SPILLWAY_UM_INVALID_ARGUMENT,
                   "are not all in far memory of 262144 bytes");
  }
}

TEST_P(FarAlone, EndsOnce) {
  const Aligned memory = aligned(kBlock, 1);
  EXPECT_EQ(spillway_um_far_destroy(far), SPILLWAY_UM_OK);
  expect_refused(spillway_um_far_destroy(far), SPILLWAY_UM_INVALID_ARGUMENT, "it was destroyed");
  expect_refused(spillway_um_far_read(far, 0, memory.get(), kBlock), SPILLWAY_UM_INVALID_ARGUMENT,
                 "is not alive here");
}

TEST_P(FarAlone, AChildHasNone) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan has no threads in the child of a process with threads";
#endif
  const pid_t child = fork();
  if (child == 0) _exit(spillway_um_far_destroy(far) == SPILLWAY_UM_INVALID_ARGUMENT ? 7 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(FarAloneCreate, RefusesWhatMakesNoSense) {
  spillway_um_far far{.id = 5};
  expect_refused(spillway_um_far_create(nullptr, 0, &far), SPILLWAY_UM_INVALID_ARGUMENT,
                 "far memory of no bytes");
  EXPECT_EQ(far.id, 0U);
  expect_refused(spillway_um_far_create(nullptr, 4097, &far), SPILLWAY_UM_INVALID_ARGUMENT,
                 "size 4097 is no multiple");
  expect_refused(spillway_um_far_create(nullptr, kBlock, nullptr), SPILLWAY_UM_INVALID_ARGUMENT,
                 "far is NULL");
  EXPECT_NE(spillway_um_far_create("/no/such/folder/at/all", kBlock, &far), SPILLWAY_UM_OK);
  EXPECT_EQ(far.id, 0U);
}

// A far file on a full file system, through the C functions.

/// Limits files to one page from now on.
void limit_files_to_a_page() {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = kPage, .rlim_max = kPage};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

class FarFailure : public SpaceOfC {
 protected:
  void SetUp() override {
    wanted = options();
    path = folder.path().string();
    wanted.far_path = path.c_str();
  }
  void make() { ASSERT_EQ(spillway_um_create(&wanted, &space), SPILLWAY_UM_OK); }
  /// Returns pages with every byte of page i set to i + 1. Four pages fit near.
  std::byte* filled(std::size_t pages) const {
    std::byte* const all = take(pages * kPage);
    for (std::size_t page = 0; page < pages; ++page) {
      std::memset(all + page * kPage, static_cast<int>(page + 1), kPage);
    }
    return all;
  }

  test::TemporaryFolder folder;
  std::string path;
  spillway_um_options wanted;
};

TEST_F(FarFailure, LeavesWhatCannotBeSavedNearAndSaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto offload = [&] {
    make();
    std::byte* const all = filled(4);
    limit_files_to_a_page();
    EXPECT_EQ(spillway_um_offload(space, all, 4 * kPage), SPILLWAY_UM_OK);
    expect_refused(spillway_um_synchronize(space), SPILLWAY_UM_FAILED, "cannot write far memory");
    EXPECT_EQ(near_bytes(all, 4 * kPage), 3 * kPage);
    EXPECT_EQ(counters().refused_hints, 3U);
    for (int page = 0; page < 4; ++page) EXPECT_EQ(all[page * kPage], std::byte(page + 1));
    std::_Exit(HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(offload(), testing::ExitedWithCode(0), "");
}

TEST_F(FarFailure, EndsAProcessThatFaultsRatherThanLoseContent) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan reports the exception in a page fault's handler, which ends the process";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fault = [&] {
    make();
    limit_files_to_a_page();
    static_cast<void>(filled(6));  // page 0 can be saved, page 1 cannot
    std::cerr << "has lost content\n";
  };
  EXPECT_DEATH(fault(), "^spillway: a page fault cannot be resolved: cannot write far memory in " +
                            path.substr(0, 5) + ".*: File too large; the process ends before");
}

}  // namespace
}  // namespace spillway::dropin
