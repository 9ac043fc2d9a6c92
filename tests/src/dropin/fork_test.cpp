#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "tests/sleeping_threads.h"
#include "tests/src/dropin/space_of_c.h"

namespace spillway::dropin {
namespace {

/// Returns the result of `work` in a child process; -1 when a signal ended it.
int in_child(const std::function<int()>& work) {
#ifdef __SANITIZE_ADDRESS__
  // GCC 12's ASan leaves its allocator's locks unchanged in a child, so no thread may hold one.
  while (!test::all_others_sleep()) std::this_thread::yield();
#endif
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Fork : public SpaceOfC {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "TSan has no threads in the child of a process with threads";
#endif
    SpaceOfC::SetUp();
    block = take(16 * kPage);
    std::memset(block, 3, 16 * kPage);
  }
  std::byte* block = nullptr;
};

TEST_F(Fork, TheChildHasNoSpaces) {
  const int refused = in_child([&] {
    const bool is_refused = spillway_um_free(space, block) == SPILLWAY_UM_INVALID_SPACE;
    const std::string sentence = spillway_um_last_error();
    return is_refused && sentence.find("made before a fork") != std::string::npos ? 7 : 1;
  });
  EXPECT_EQ(refused, 7);
}

TEST_F(Fork, TheChildMayMakeSpacesOfItsOwn) {
  const int made = in_child([] {
    spillway_um_space own{};
    const spillway_um_options wanted = options();
    if (spillway_um_create(&wanted, &own) != SPILLWAY_UM_OK) return 1;
    void* address = nullptr;
    if (spillway_um_allocate(own, 8 * kPage, 0, &address) != SPILLWAY_UM_OK) return 2;
    std::memset(address, 5, 8 * kPage);
    if (spillway_um_offload(own, address, 8 * kPage) != SPILLWAY_UM_OK) return 3;
    if (spillway_um_synchronize(own) != SPILLWAY_UM_OK) return 4;
    if (static_cast<char*>(address)[5 * kPage] != 5) return 5;
    return spillway_um_destroy(own) == SPILLWAY_UM_OK ? 7 : 6;
  });
  EXPECT_EQ(made, 7);
}

TEST_F(Fork, TheParentGoesOnWhileItHasAChildAndAfterwards) {
  const int heard = in_child([] { return 7; });
  EXPECT_EQ(heard, 7);
  EXPECT_EQ(std::system("true"), 0);  // fork and exec in any form
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(block[i * kPage + 9], static_cast<std::byte>(3 + round));
      std::memset(block + i * kPage, 4 + round, kPage);
    }
  }
  EXPECT_GE(counters().evictions, 3U * 12U);
}

// Makes no other space before: fork locks in reverse order of preparation.
TEST(ForkOfADefaultSpace, MayHappenWhileItIsMade) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan has no threads in the child of a process with threads";
#elif defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "GCC 12's ASan leaves its allocator's locks as they are in a child";
#endif
  setenv("SPILLWAY_UM_DEVICE", "host", 1);
  setenv("SPILLWAY_UM_NEAR", "256KiB", 1);
  setenv("SPILLWAY_UM_CAPACITY", "1MiB", 1);
  std::atomic<bool> is_over = false;
  std::thread maker{[&] {
    while (!is_over) {
      spillway_um_space made{};
      ASSERT_EQ(spillway_um_default(&made), SPILLWAY_UM_OK) << spillway_um_last_error();
      ASSERT_EQ(spillway_um_destroy(made), SPILLWAY_UM_OK);
    }
  }};
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(in_child([] {
                spillway_um_space own{};
                return spillway_um_default(&own) == SPILLWAY_UM_OK ? 7 : 1;
              }),
              7);
  }
  is_over = true;
  maker.join();
}

}  // namespace
}  // namespace spillway::dropin
