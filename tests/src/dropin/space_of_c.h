#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "um/dropin/spillway_um.h"

namespace spillway::dropin {

inline constexpr std::size_t kPage = 65536;

/// A space of sixteen pages of 64 KiB with room for four near, through the C functions.
class SpaceOfC : public testing::Test {
 protected:
  [[nodiscard]] static spillway_um_options options() {
    spillway_um_options wanted;
    spillway_um_options_init(&wanted);
    wanted.near_bytes = 4 * kPage;
    wanted.capacity_bytes = 16 * kPage;
    wanted.page_bytes = kPage;
    return wanted;
  }
  void SetUp() override { make(options()); }
  void make(const spillway_um_options& wanted) {
    ASSERT_EQ(spillway_um_create(&wanted, &space), SPILLWAY_UM_OK) << spillway_um_last_error();
  }
  void TearDown() override { static_cast<void>(spillway_um_destroy(space)); }

  [[nodiscard]] std::byte* take(std::size_t bytes) const {
    void* address = nullptr;
    EXPECT_EQ(spillway_um_allocate(space, bytes, 0, &address), SPILLWAY_UM_OK)
        << spillway_um_last_error();
    return static_cast<std::byte*>(address);
  }
  [[nodiscard]] spillway_um_counters counters() const {
    spillway_um_counters read{};
    read.version = SPILLWAY_UM_COUNTERS_VERSION;
    EXPECT_EQ(spillway_um_get_counters(space, &read), SPILLWAY_UM_OK) << spillway_um_last_error();
    return read;
  }
  [[nodiscard]] std::uint64_t near_bytes(const void* address, std::size_t bytes) const {
    std::uint64_t near = 0;
    EXPECT_EQ(spillway_um_near_bytes(space, address, bytes, &near), SPILLWAY_UM_OK)
        << spillway_um_last_error();
    return near;
  }

  spillway_um_space space{};
};

/// Expects that a call was refused with `status` and a message that contains `part`.
inline void expect_refused(spillway_um_status got, spillway_um_status status,
                           const std::string& part) {
  EXPECT_EQ(got, status);
  const std::string sentence = spillway_um_last_error();
  EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("--"), std::string::npos) << "names no option of C: " << sentence;
}

}  // namespace spillway::dropin
