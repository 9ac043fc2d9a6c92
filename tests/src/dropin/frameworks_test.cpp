#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/src/dropin/space_of_c.h"

namespace spillway::dropin {
namespace {

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
