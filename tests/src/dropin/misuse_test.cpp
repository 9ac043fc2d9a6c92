#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "tests/sleeping_threads.h"
#include "tests/src/dropin/space_of_c.h"
#include "tests/temporary_folder.h"

namespace spillway::dropin {
namespace {

/// Expects that a space with these options is refused.
void expect_no_space(const spillway_um_options& options, spillway_um_status status,
                     const std::string& part) {
  spillway_um_space space{.id = 5};
  expect_refused(spillway_um_create(&options, &space), status, part);
  EXPECT_EQ(space.id, 0U);
}

class Misused : public SpaceOfC {};

TEST_F(Misused, DoubleFree) {
  std::byte* const block = take(100);
  EXPECT_EQ(spillway_um_free(space, block), SPILLWAY_UM_OK);
  expect_refused(spillway_um_free(space, block), SPILLWAY_UM_NOT_ALLOCATED,
                 "is of no live allocation; was it freed?");
  EXPECT_EQ(counters().frees, 1U);
}

TEST_F(Misused, ForeignPointer) {
  std::array<std::byte, 64> elsewhere{};
  expect_refused(spillway_um_free(space, elsewhere.data()), SPILLWAY_UM_NOT_ALLOCATED,
                 "is not an address of this space");
  std::byte* const block = take(100);
  expect_refused(spillway_um_free(space, block + 1), SPILLWAY_UM_NOT_ALLOCATED,
                 "is inside an allocation; free its first address");
  expect_refused(spillway_um_touch(space, nullptr, 1, SPILLWAY_UM_READ), SPILLWAY_UM_NOT_ALLOCATED,
                 "is not an address of this space");
}

TEST_F(Misused, ZeroAndHugeSizes) {
  void* address = this;
  expect_refused(spillway_um_allocate(space, 0, 0, &address), SPILLWAY_UM_INVALID_ARGUMENT,
                 "an allocation of no bytes");
  EXPECT_EQ(address, nullptr);
  for (const std::size_t huge : {16 * kPage + 1, SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2}) {
    expect_refused(spillway_um_allocate(space, huge, 0, &address), SPILLWAY_UM_OUT_OF_MEMORY,
                   "no room for ");
  }
  std::byte* const block = take(kPage);
  expect_refused(spillway_um_prefetch(space, block, SIZE_MAX), SPILLWAY_UM_NOT_ALLOCATED,
                 "leaves its allocation");
  EXPECT_EQ(spillway_um_prefetch(space, block, 0), SPILLWAY_UM_OK);
}

TEST_F(Misused, Alignment) {
  void* address = nullptr;
  for (const std::size_t alignment : {std::size_t{3}, 4 * 1024 * kPage, SIZE_MAX}) {
    expect_refused(spillway_um_allocate(space, 8, alignment, &address),
                   SPILLWAY_UM_INVALID_ARGUMENT, "give a power of two of at most 2 MiB");
  }
}

TEST_F(Misused, UseAfterDestroy) {
  std::byte* const block = take(100);
  EXPECT_EQ(spillway_um_destroy(space), SPILLWAY_UM_OK);
  void* address = this;
  std::uint64_t near = 0;
  spillway_um_counters read{};
  const std::string dead = "is not alive here: it was destroyed";
  const auto refused = [&](spillway_um_status got) {
    expect_refused(got, SPILLWAY_UM_INVALID_SPACE, dead);
  };
  refused(spillway_um_free(space, block));
  refused(spillway_um_free(space, nullptr));
  refused(spillway_um_free_async(space, block, nullptr));
  refused(spillway_um_allocate(space, 1, 0, &address));
  EXPECT_EQ(address, nullptr);
  refused(spillway_um_prefetch(space, block, 1));
  refused(spillway_um_offload(space, block, 1));
  refused(spillway_um_discard(space, block, 1));
  refused(spillway_um_advise(space, block, 1, SPILLWAY_UM_ADVICE_NONE));
  refused(spillway_um_touch(space, block, 1, SPILLWAY_UM_READ));
  refused(spillway_um_prepare_thread(space));
  refused(spillway_um_synchronize(space));
  refused(spillway_um_near_bytes(space, block, 1, &near));
  refused(spillway_um_get_counters(space, &read));
  refused(spillway_um_destroy(space));
  expect_refused(spillway_um_destroy({.id = 0}), SPILLWAY_UM_INVALID_SPACE, "no space was ever");
  expect_refused(spillway_um_destroy({.id = ~std::uint64_t{0}}), SPILLWAY_UM_INVALID_SPACE,
                 "no space was ever");
}

TEST_F(Misused, RangeOutsideAnAllocation) {
  std::byte* const first = take(2 * kPage);
  std::byte* const second = take(2 * kPage);  // adjacent: a range across both belongs to neither
  ASSERT_EQ(second, first + 2 * kPage);
  const std::string leaves = "leaves its allocation, which ends after 131072";
  expect_refused(spillway_um_prefetch(space, first, 3 * kPage), SPILLWAY_UM_NOT_ALLOCATED, leaves);
  expect_refused(spillway_um_offload(space, first, 3 * kPage), SPILLWAY_UM_NOT_ALLOCATED, leaves);
  expect_refused(spillway_um_discard(space, first, 3 * kPage), SPILLWAY_UM_NOT_ALLOCATED, leaves);
  expect_refused(spillway_um_prefetch(space, second + 2 * kPage, 1), SPILLWAY_UM_NOT_ALLOCATED,
                 "is of no live allocation");
}

TEST_F(Misused, NullWhereAResultGoes) {
  expect_refused(spillway_um_allocate(space, 8, 0, nullptr), SPILLWAY_UM_INVALID_ARGUMENT,
                 "address is NULL");
  expect_refused(spillway_um_get_counters(space, nullptr), SPILLWAY_UM_INVALID_ARGUMENT,
                 "counters is NULL");
  expect_refused(spillway_um_near_bytes(space, take(8), 8, nullptr), SPILLWAY_UM_INVALID_ARGUMENT,
                 "near_bytes is NULL");
  const spillway_um_options wanted = options();
  expect_refused(spillway_um_create(&wanted, nullptr), SPILLWAY_UM_INVALID_ARGUMENT,
                 "space is NULL");
  expect_refused(spillway_um_create(nullptr, &space), SPILLWAY_UM_INVALID_ARGUMENT, "no options");
  spillway_um_options_init(nullptr);
}

TEST_F(Misused, ValuesThatAreInNoEnumeration) {
  std::byte* const block = take(8);
  expect_refused(spillway_um_advise(space, block, 8, 7), SPILLWAY_UM_INVALID_ARGUMENT,
                 "there is no advice 7");
  expect_refused(spillway_um_touch(space, block, 8, 0), SPILLWAY_UM_INVALID_ARGUMENT,
                 "there is no access 0");
}

TEST_F(Misused, AStreamOnTheHost) {
  std::byte* const block = take(8);
  expect_refused(spillway_um_free_async(space, block, this), SPILLWAY_UM_INVALID_ARGUMENT,
                 "the host device has no streams");
  EXPECT_EQ(spillway_um_free(space, block), SPILLWAY_UM_OK);  // it was not freed
}

TEST_F(Misused, VersionsFromElsewhere) {
  spillway_um_counters read{};
  expect_refused(spillway_um_get_counters(space, &read), SPILLWAY_UM_INVALID_ARGUMENT,
                 "counters of version 0");
  spillway_um_options wanted{};
  expect_no_space(wanted, SPILLWAY_UM_INVALID_ARGUMENT, "fill them with spillway_um_options_init");
}

TEST_F(Misused, Options) {
  const auto refused = [](const std::function<void(spillway_um_options&)>& spoil,
                          spillway_um_status status, const std::string& part) {
    spillway_um_options wanted = options();
    spoil(wanted);
    expect_no_space(wanted, status, part);
  };
  const auto argument = SPILLWAY_UM_INVALID_ARGUMENT;
  refused([](auto& o) { o.near_bytes = kPage; }, argument, "does not hold two pages of 64.0 KiB");
  refused([](auto& o) { o.near_bytes = 0; }, argument, "give near_bytes");
  refused([](auto& o) { o.capacity_bytes = 0; }, argument, "give capacity_bytes");
  refused([](auto& o) { o.capacity_bytes = ~0ULL; }, argument, "give at most");
  refused([](auto& o) { o.near_bytes = o.capacity_bytes = 1ULL << 50U, o.page_bytes = 0; },
          SPILLWAY_UM_OUT_OF_MEMORY, "are available");
  refused([](auto& o) { o.page_bytes = 12345; }, argument, "give a power of two");
  refused([](auto& o) { o.device = "gpu"; }, argument, "there is no device \"gpu\"");
  refused([](auto& o) { o.device = "cuda:x"; }, argument, "there is no device \"cuda:x\"");
  refused([](auto& o) { o.device = "cuda:"; }, argument, "there is no device \"cuda:\"");
  refused([](auto& o) { o.oversubscribe = 1; }, argument, "the host keeps to its budget");
  refused([](auto& o) { o.link_bytes_per_second = NAN; }, argument, "a link's bandwidth is");
  refused([](auto& o) { o.paging = 9; }, argument, "there is no paging 9");
  refused([](auto& o) { o.far_path = "/nowhere/at/all"; }, SPILLWAY_UM_FAILED,
          "there is no folder /nowhere/at");
}

TEST_F(Misused, AFarFileThatIsLargerThanItsFileSystem) {
  const test::TemporaryFolder folder;
  spillway_um_options wanted = options();
  const std::string path = folder.path().string();
  wanted.far_path = path.c_str();
  wanted.page_bytes = 2ULL << 20U;
  wanted.near_bytes = 4ULL << 20U;
  wanted.capacity_bytes = 1ULL << 50U;
  expect_no_space(wanted, SPILLWAY_UM_FAILED, "cannot put 1024 TiB of far memory in " + path);
}

TEST_F(Misused, AFullFileSystem) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path().string();
  if (mount("spillway", path.c_str(), "tmpfs", 0, "size=512k") != 0) {
    GTEST_SKIP() << "only root may mount a small file system: " << std::strerror(errno);
  }
  spillway_um_options wanted = options();  // 1 MiB of far memory
  wanted.far_path = path.c_str();
  expect_no_space(wanted, SPILLWAY_UM_FAILED,
                  "512 KiB are free there; choose another place with far_path");
  EXPECT_EQ(umount(path.c_str()), 0);
}

TEST_F(Misused, ADeviceThatIsNotThere) {
  spillway_um_options wanted = options();
  wanted.page_bytes = 0;
  wanted.device = "cuda:999";
  spillway_um_space none{};
  expect_refused(spillway_um_create(&wanted, &none), SPILLWAY_UM_FAILED, "");
  const std::string sentence = spillway_um_last_error();
  EXPECT_TRUE(sentence.find("no NVIDIA driver") != std::string::npos ||
              sentence.find("GPU") != std::string::npos ||
              sentence.find("this build has no CUDA side") != std::string::npos)
      << sentence;
}

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
