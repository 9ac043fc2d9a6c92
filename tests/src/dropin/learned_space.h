#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/src/dropin/space_of_c.h"

namespace spillway::dropin {

/// Thirty-two pages of 64 KiB with room for eight near, on a slow link, so that faults are
/// expensive.
class LearnedSpace : public SpaceOfC {
 protected:
  static constexpr std::size_t kNear = 8;

  void SetUp() override {
    spillway_um_options wanted = options();
    wanted.near_bytes = kNear * kPage;
    wanted.capacity_bytes = 32 * kPage;
    wanted.link_bytes_per_second = 2e9;
    make(wanted);
  }

  static void ok(spillway_um_status status) {
    EXPECT_EQ(status, SPILLWAY_UM_OK) << spillway_um_last_error();
  }
  [[nodiscard]] std::byte* take(std::size_t pages) const { return SpaceOfC::take(pages * kPage); }
  void give(void* address) const { ok(spillway_um_free(space, address)); }
  void touch(std::byte* address, std::size_t pages, int access) const {
    ok(spillway_um_touch(space, address, pages * kPage, access));
  }
  /// Ends an iteration and waits for its replay plan and moves.
  void mark() const {
    ok(spillway_um_mark_iteration(space));
    ok(spillway_um_synchronize(space));
  }
  [[nodiscard]] spillway_um_learned_counters counters() const {
    spillway_um_learned_counters read{};
    read.version = SPILLWAY_UM_LEARNED_COUNTERS_VERSION;
    ok(spillway_um_get_learned_counters(space, &read));
    EXPECT_EQ(read.iterations, read.recorded + read.followed + read.abandoned + read.idle);
    EXPECT_EQ(read.touches, read.hits + read.misses + read.unguided);
    return read;
  }
  [[nodiscard]] std::string status() const {
    std::array<char, 200> text{};
    ok(spillway_um_learned_status(space, text.data(), text.size()));
    return text.data();
  }
  /// Adds one to a byte of each page in [0, pages), in about half a millisecond per page. Returns
  /// how many bytes were not `expected` before.
  static std::size_t add_one(std::byte* block, std::size_t pages, std::uint8_t expected) {
    std::size_t wrong = 0;
    for (std::size_t page = 0; page < pages; ++page) {
      for (std::size_t i = page * kPage; i < (page + 1) * kPage; i += 64) {
        const auto now = std::to_integer<std::uint8_t>(block[i]);
        if (now != expected) ++wrong;
        block[i] = std::byte(now + 1);
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds{300};
      while (std::chrono::steady_clock::now() < end) {
      }
    }
    return wrong;
  }
};

}  // namespace spillway::dropin
