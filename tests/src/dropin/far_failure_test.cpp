// A far file on a full file system, through the C functions.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "tests/src/dropin/space_of_c.h"
#include "tests/temporary_folder.h"

namespace spillway::dropin {
namespace {

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
