#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "src/dropin/block_pieces.h"
#include "tests/src/dropin/space_of_c.h"

namespace spillway::dropin {
namespace {

std::vector<ElfW(Dyn)> dynamic_section() {
  Dl_info info{};
  void* found = nullptr;
  dladdr1(reinterpret_cast<const void*>(&spillway_um_create), &info, &found, RTLD_DL_LINKMAP);
  const auto* const library = static_cast<const link_map*>(found);
  EXPECT_NE(std::string{library->l_name}.find("libspillway_um.so"), std::string::npos);
  std::vector<ElfW(Dyn)> entries;
  for (const ElfW(Dyn)* entry = library->l_ld; entry->d_tag != DT_NULL; ++entry) {
    entries.push_back(*entry);
  }
  return entries;
}

// Static TLS is scarce for a library that a program loads after PyTorch and others.
TEST(Library, NeedsNoStaticThreadLocalStorage) {
  for (const auto& entry : dynamic_section()) {
    if (entry.d_tag != DT_FLAGS) continue;
    EXPECT_EQ(entry.d_un.d_val & DF_STATIC_TLS, 0U);
  }
}

// A program without oneTBB or image libraries may load it.
TEST(Library, NeedsOnlyTheLibrariesOfTheCompiler) {
  const std::regex of_the_compiler{
      R"((libc|libm|libgcc_s|libstdc\+\+|ld-linux-.*|lib(a|ub|t)san)[.]so[.]\d+)"};
  const std::vector<ElfW(Dyn)> entries = dynamic_section();
  const auto names = std::ranges::find(entries, DT_STRTAB, &ElfW(Dyn)::d_tag);
  ASSERT_NE(names, entries.end());
  int needed = 0;
  for (const auto& entry : entries) {
    if (entry.d_tag != DT_NEEDED) continue;
    ++needed;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader keeps addresses as numbers
    const auto* const text = reinterpret_cast<const char*>(names->d_un.d_ptr);
    EXPECT_TRUE(std::regex_match(text + entry.d_un.d_val, of_the_compiler))
        << text + entry.d_un.d_val;
  }
  EXPECT_GT(needed, 0);
}

TEST_F(SpaceOfC, MovesByHintsAndCountsIt) {
  std::byte* const two = take(2 * kPage);
  std::memset(two, 7, 2 * kPage);
  EXPECT_EQ(spillway_um_offload(space, two, 2 * kPage), SPILLWAY_UM_OK);
  EXPECT_EQ(spillway_um_synchronize(space), SPILLWAY_UM_OK);
  EXPECT_EQ(near_bytes(two, 2 * kPage), 0U);
  EXPECT_EQ(spillway_um_prefetch(space, two, kPage + 1), SPILLWAY_UM_OK);
  EXPECT_EQ(spillway_um_synchronize(space), SPILLWAY_UM_OK);
  EXPECT_EQ(near_bytes(two, 2 * kPage), 2 * kPage);
  EXPECT_EQ(near_bytes(two + 5, 9), 9U);
  EXPECT_EQ(two[2 * kPage - 1], std::byte{7});
  EXPECT_EQ(spillway_um_touch(space, two, 1, SPILLWAY_UM_WRITE), SPILLWAY_UM_OK);
  EXPECT_EQ(spillway_um_advise(space, two, 1, SPILLWAY_UM_ADVICE_READ_MOSTLY), SPILLWAY_UM_OK);
  EXPECT_EQ(spillway_um_discard(space, two, kPage), SPILLWAY_UM_OK);
  const spillway_um_counters now = counters();
  EXPECT_EQ(now.allocations, 1U);
  EXPECT_EQ(now.allocated_bytes, 2 * kPage);
  EXPECT_EQ(now.bytes_offloaded, 2 * kPage);
  EXPECT_EQ(now.bytes_prefetched, 2 * kPage);
  EXPECT_EQ(now.discarded_pages, 1U);
  EXPECT_EQ(now.near_bytes, kPage);
  EXPECT_EQ(now.near_peak_bytes, 2 * kPage);
  EXPECT_EQ(now.faults, 2U);
  EXPECT_GT(now.fault_nanoseconds, 0U);
  EXPECT_EQ(now.touches, 1U);
}

TEST_F(SpaceOfC, AllocatesAndFreesInTheOrderOfNoStream) {
  void* address = nullptr;
  EXPECT_EQ(spillway_um_allocate_async(space, 100, 512, nullptr, &address), SPILLWAY_UM_OK);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 512, 0U);
  EXPECT_EQ(spillway_um_free_async(space, address, nullptr), SPILLWAY_UM_OK);
  EXPECT_EQ(counters().frees, 1U);
}

TEST_F(SpaceOfC, ASpaceMayEndWithAllocationsAndItsHandleIsNotUsedAgain) {
  std::memset(take(kPage), 1, kPage);
  EXPECT_EQ(spillway_um_destroy(space), SPILLWAY_UM_OK);
  spillway_um_space next{};
  const spillway_um_options wanted = options();
  ASSERT_EQ(spillway_um_create(&wanted, &next), SPILLWAY_UM_OK);
  EXPECT_NE(next.id, space.id);
  EXPECT_EQ(spillway_um_destroy(next), SPILLWAY_UM_OK);
}

// Repeats, because the two threads rarely meet within the call.
TEST_F(SpaceOfC, IsDestroyedOnceByThreadsThatDestroyItTogether) {
  const spillway_um_options wanted = options();
  for (int round = 0; round < 200; ++round) {
    spillway_um_space shared{};
    ASSERT_EQ(spillway_um_create(&wanted, &shared), SPILLWAY_UM_OK);
    std::atomic<int> waiting = 2;
    std::atomic<int> destroyed = 0;
    const auto destroy = [&] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      if (spillway_um_destroy(shared) == SPILLWAY_UM_OK) ++destroyed;
    };
    std::thread other{destroy};
    destroy();
    other.join();
    ASSERT_EQ(destroyed, 1);
  }
}

TEST_F(SpaceOfC, MayBeDestroyedWhileOtherThreadsAreInside) {
  std::byte* const block = take(16 * kPage);
  std::atomic<int> inside = 0;
  const auto call_until_it_is_gone = [&] {
    spillway_um_status status = SPILLWAY_UM_OK;
    for (int calls = 0; status == SPILLWAY_UM_OK; ++calls) {
      status = spillway_um_prefetch(space, block, 16 * kPage);
      if (status == SPILLWAY_UM_OK) status = spillway_um_synchronize(space);
      if (calls == 3) ++inside;
    }
    EXPECT_EQ(status, SPILLWAY_UM_INVALID_SPACE) << spillway_um_last_error();
  };
  std::thread one{call_until_it_is_gone};
  std::thread other{call_until_it_is_gone};
  while (inside < 2) std::this_thread::yield();
  EXPECT_EQ(spillway_um_destroy(space), SPILLWAY_UM_OK);
  one.join();
  other.join();
}

TEST_F(SpaceOfC, GivesAThreadAStackForItsPageFaults) {
  std::thread{[&] {
    stack_t stack{};
    EXPECT_EQ(spillway_um_prepare_thread(space), SPILLWAY_UM_OK) << spillway_um_last_error();
    EXPECT_EQ(spillway_um_prepare_thread(space), SPILLWAY_UM_OK) << spillway_um_last_error();
    EXPECT_EQ(sigaltstack(nullptr, &stack), 0);
    EXPECT_EQ(stack.ss_flags & SS_DISABLE, 0);
    *take(kPage) = std::byte{1};  // a page fault
  }}.join();
  EXPECT_EQ(counters().faults, 1U);
}

TEST_F(SpaceOfC, SaysWhichDeviceItIsOn) {
  std::int32_t ordinal = 7;
  EXPECT_EQ(spillway_um_device(space, &ordinal), SPILLWAY_UM_OK);
  EXPECT_EQ(ordinal, -1);
  expect_refused(spillway_um_device(space, nullptr), SPILLWAY_UM_INVALID_ARGUMENT,
                 "ordinal is NULL");
}

TEST_F(SpaceOfC, KeepsTheLastErrorOfEachThread) {
  expect_refused(spillway_um_free(space, this), SPILLWAY_UM_NOT_ALLOCATED, "not an address");
  std::thread{[] { EXPECT_STREQ(spillway_um_last_error(), ""); }}.join();
  EXPECT_EQ(spillway_um_free(space, nullptr), SPILLWAY_UM_OK);
  expect_refused(SPILLWAY_UM_OK, SPILLWAY_UM_OK, "not an address");  // a success keeps the message
}

TEST(Version, IsTheProjects) { EXPECT_STREQ(spillway_um_version(), SPILLWAY_VERSION); }

using namespace um;

constexpr PieceSize kSize{.page = 4_KiB, .piece = 8_KiB};

/// Returns the sizes of the pieces that a part of an allocation of `all` bytes overlaps.
std::vector<std::size_t> sizes(std::size_t all, std::size_t begin, std::size_t part) {
  static std::byte memory[64 << 10];
  const Range allocation{memory, all};
  std::vector<std::size_t> result;
  for (const Range& piece : pieces_of(allocation, allocation.subspan(begin, part), kSize)) {
    EXPECT_EQ(static_cast<std::size_t>(piece.data() - memory) % 8192, 0U);
    result.push_back(piece.size());
  }
  return result;
}

TEST(BlockPieces, CoverAnAllocation) {
  EXPECT_EQ(sizes(16384, 0, 16384), (std::vector<std::size_t>{8192, 8192}));
  EXPECT_EQ(sizes(4096, 0, 4096), (std::vector<std::size_t>{4096}));
  EXPECT_EQ(sizes(20480, 0, 20480), (std::vector<std::size_t>{8192, 8192, 4096}));
}

TEST(BlockPieces, LeaveNoRestSmallerThanAPage) {
  EXPECT_EQ(sizes(16384 + 100, 0, 16484), (std::vector<std::size_t>{8192, 8292}));
  EXPECT_EQ(sizes(16384 + 100, 16400, 1), (std::vector<std::size_t>{8292}));
  EXPECT_EQ(sizes(5000, 4999, 1), (std::vector<std::size_t>{5000}));
}

TEST(BlockPieces, AreThoseThatAPartHasBytesOf) {
  EXPECT_EQ(sizes(32768, 8191, 2).size(), 2U);
  EXPECT_EQ(sizes(32768, 8192, 8192).size(), 1U);
  EXPECT_TRUE(sizes(32768, 8192, 0).empty());
}

TEST(BlockPieces, AreNoneOfAnAllocationSmallerThanAPage) {
  EXPECT_TRUE(sizes(4095, 0, 4095).empty());
}

TEST(BlockPieces, AreASixtyFourthOfNearMemory) {
  EXPECT_EQ(choose_pieces(1_GiB, 2_MiB).piece, 16_MiB);
  EXPECT_EQ(choose_pieces(40_GiB, 2_MiB).piece, 16_MiB);
  EXPECT_EQ(choose_pieces(300_MiB, 2_MiB).piece, 4_MiB);
  EXPECT_EQ(choose_pieces(64_MiB, 2_MiB).piece, 2_MiB);
}

/// The default space of each test, from the environment unless set_default() was called.
class DefaultSpaceOfC : public SpaceOfC {
 protected:
  void SetUp() override {
    setenv("SPILLWAY_UM_DEVICE", "host", 1);
    setenv("SPILLWAY_UM_NEAR", "1MiB", 1);
    setenv("SPILLWAY_UM_CAPACITY", "4MiB", 1);
    unsetenv("SPILLWAY_UM_PAGE");
    unsetenv("SPILLWAY_UM_OVERSUBSCRIBE");
  }
  void find() { ASSERT_EQ(spillway_um_default(&space), SPILLWAY_UM_OK); }
};

TEST_F(DefaultSpaceOfC, SaysWhatTheEnvironmentLacks) {
  unsetenv("SPILLWAY_UM_CAPACITY");
  expect_refused(spillway_um_default(&space), SPILLWAY_UM_INVALID_ARGUMENT,
                 "set SPILLWAY_UM_CAPACITY=2GiB, or call spillway_um_set_default");
  setenv("SPILLWAY_UM_CAPACITY", "much", 1);
  expect_refused(spillway_um_default(&space), SPILLWAY_UM_INVALID_ARGUMENT,
                 "SPILLWAY_UM_CAPACITY=much is no size");
  testing::internal::CaptureStderr();
  EXPECT_EQ(spillway_torch_malloc(64, 0, nullptr), nullptr);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("spillway_torch_malloc: SPILLWAY_UM"),
            std::string::npos);
}

TEST_F(DefaultSpaceOfC, IsFoundOnlyWithAPlaceForItsHandle) {
  expect_refused(spillway_um_default(nullptr), SPILLWAY_UM_INVALID_ARGUMENT, "space is NULL");
  unsetenv("SPILLWAY_UM_NEAR");
  space.id = 7;
  EXPECT_EQ(spillway_um_default(&space), SPILLWAY_UM_INVALID_ARGUMENT);
  EXPECT_EQ(space.id, 0U);
}

TEST_F(DefaultSpaceOfC, TakesItsPagesOfTheEnvironment) {
  setenv("SPILLWAY_UM_PAGE", "small", 1);
  expect_refused(spillway_um_default(&space), SPILLWAY_UM_INVALID_ARGUMENT,
                 "SPILLWAY_UM_PAGE=small is no size; write 2MiB");
  setenv("SPILLWAY_UM_PAGE", "512KiB", 1);
  find();
  take(1)[0] = std::byte{1};
  EXPECT_EQ(counters().near_bytes, 512U << 10U);
}

TEST_F(DefaultSpaceOfC, TakesOversubscriptionOfTheEnvironment) {
  setenv("SPILLWAY_UM_OVERSUBSCRIBE", "yes", 1);
  expect_refused(spillway_um_default(&space), SPILLWAY_UM_INVALID_ARGUMENT,
                 "SPILLWAY_UM_OVERSUBSCRIBE=yes is neither 0 nor 1");
  setenv("SPILLWAY_UM_OVERSUBSCRIBE", "1", 1);
  expect_refused(spillway_um_default(&space), SPILLWAY_UM_INVALID_ARGUMENT,
                 "oversubscribe is for a GPU");
  setenv("SPILLWAY_UM_OVERSUBSCRIBE", "0", 1);
  find();
}

TEST_F(DefaultSpaceOfC, ServesPyTorch) {
  void* const block = spillway_torch_malloc(3 << 20, 0, nullptr);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 512, 0U);
  static_cast<char*>(block)[(3 << 20) - 1] = 1;
  find();
  EXPECT_EQ(counters().allocated_bytes, 3U << 20U);
  EXPECT_EQ(spillway_torch_malloc(0, 0, nullptr), nullptr);
  EXPECT_EQ(spillway_torch_malloc(-1, 0, nullptr), nullptr);
  spillway_torch_free(block, 3 << 20, 0, nullptr);
  spillway_torch_free(nullptr, 0, 0, nullptr);
  EXPECT_EQ(counters().allocated_bytes, 0U);
  testing::internal::CaptureStderr();
  spillway_torch_free(block, 3 << 20, 0, nullptr);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("was it freed?"), std::string::npos);
}

TEST_F(DefaultSpaceOfC, ServesCuPy) {
  void* const block = spillway_cupy_malloc(nullptr, 100, 0);
  ASSERT_NE(block, nullptr);
  find();
  EXPECT_EQ(counters().allocations, 1U);
  spillway_cupy_free(nullptr, block, 0);
  EXPECT_EQ(counters().frees, 1U);
}

TEST_F(DefaultSpaceOfC, IsOneForThreadsThatAskAtTheSameTime) {
  std::array<spillway_um_space, 4> found{};
  std::vector<std::thread> threads;
  threads.reserve(found.size());
  for (spillway_um_space& each : found) {
    threads.emplace_back([&each] { EXPECT_EQ(spillway_um_default(&each), SPILLWAY_UM_OK); });
  }
  for (std::thread& each : threads) each.join();
  find();
  for (const spillway_um_space& each : found) EXPECT_EQ(each.id, space.id);
}

TEST_F(DefaultSpaceOfC, IsNotMadeInOrderToFree) {
  void* const block = spillway_cupy_malloc(nullptr, 100, 0);
  find();
  ASSERT_EQ(spillway_um_destroy(space), SPILLWAY_UM_OK);
  testing::internal::CaptureStderr();
  spillway_torch_free(block, 100, 0, nullptr);
  spillway_cupy_free(nullptr, block, 0);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("it was destroyed"), std::string::npos);
  const spillway_um_options wanted = options();
  EXPECT_EQ(spillway_um_set_default(&wanted), SPILLWAY_UM_OK);  // it is not in use
}

TEST_F(DefaultSpaceOfC, IsMadeOfTheOptionsSetBeforeItsFirstUse) {
  const spillway_um_options wanted = options();
  EXPECT_EQ(spillway_um_set_default(&wanted), SPILLWAY_UM_OK);
  void* const block = spillway_cupy_malloc(nullptr, 16 * kPage, 0);
  EXPECT_NE(block, nullptr);
  find();
  expect_refused(spillway_um_set_default(&wanted), SPILLWAY_UM_INVALID_ARGUMENT,
                 "the default space is in use");
}

}  // namespace
}  // namespace spillway::dropin
