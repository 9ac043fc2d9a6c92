#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/src/dropin/space_of_c.h"

namespace spillway::dropin {
namespace {

/// Returns SPILLWAY_STRESS_SECONDS, by default two.
std::chrono::seconds duration() {
  const char* const text = std::getenv("SPILLWAY_STRESS_SECONDS");
  return std::chrono::seconds{text == nullptr ? 2 : std::stoi(text)};
}

struct Block {
  std::byte* data;
  std::size_t size;
  std::byte content;
};

/// The actions of one thread.
struct Tally {
  std::uint64_t allocations = 0;
  std::uint64_t touches = 0;
  std::uint64_t wrong = 0;  // bytes with unexpected content
};

/// Performs random actions on its own blocks.
class Worker {
 public:
  /// One of all workers marks iterations, although its actions have no pattern.
  Worker(spillway_um_space space, std::uint32_t seed, bool marks)
      : space_{space}, random_{seed}, marks_{marks} {}

  Tally work(std::chrono::steady_clock::time_point end) {
    constexpr std::uint64_t kLeast = 16;  // allocations, for slow machines
    while (std::chrono::steady_clock::now() < end || tally_.allocations < kLeast) {
      if (blocks_.size() < 8 && draw(3) == 0) take();
      if (!blocks_.empty()) use(blocks_[draw(blocks_.size())]);
      if (!blocks_.empty() && draw(6) == 0) drop(draw(blocks_.size()));
      if (marks_ && draw(50) == 0) expect_ok(spillway_um_mark_iteration(space_));
      if (draw(200) == 0) expect_ok(spillway_um_synchronize(space_));
    }
    while (!blocks_.empty()) drop(0);
    return tally_;
  }

 private:
  std::size_t draw(std::size_t below) { return random_() % below; }
  void expect_ok(spillway_um_status status) {
    EXPECT_EQ(status, SPILLWAY_UM_OK) << spillway_um_last_error();
  }

  void take() {
    const std::size_t size = 1 + draw(draw(2) == 0 ? 500 : 6 * kPage);
    void* address = nullptr;
    const spillway_um_status status = spillway_um_allocate(space_, size, 0, &address);
    if (status == SPILLWAY_UM_OUT_OF_MEMORY) return;
    expect_ok(status);
    ++tally_.allocations;
    blocks_.push_back({.data = static_cast<std::byte*>(address), .size = size, .content = {}});
    fill(blocks_.back());
  }
  void fill(Block& block) {
    block.content = static_cast<std::byte>(draw(256));
    std::memset(block.data, std::to_integer<int>(block.content), block.size);
  }
  void use(Block& block) {
    switch (draw(6)) {
      case 0:
        return expect_ok(spillway_um_prefetch(space_, block.data, block.size));
      case 1:
        return expect_ok(spillway_um_offload(space_, block.data, block.size));
      case 2:
        ++tally_.touches;
        return expect_ok(spillway_um_touch(space_, block.data, block.size, SPILLWAY_UM_READ_WRITE));
      case 3:
        expect_ok(spillway_um_discard(space_, block.data, block.size));
        return fill(block);
      case 4:
        return fill(block);
      default:
        check(block);
    }
  }
  void check(const Block& block) {
    tally_.wrong += static_cast<std::uint64_t>(
        std::count_if(block.data, block.data + block.size,
                      [&](std::byte each) { return each != block.content; }));
  }
  void drop(std::size_t index) {
    check(blocks_[index]);
    expect_ok(spillway_um_free(space_, blocks_[index].data));
    blocks_[index] = blocks_.back();
    blocks_.pop_back();
  }

  spillway_um_space space_;
  std::mt19937 random_;
  bool marks_;
  std::vector<Block> blocks_;
  Tally tally_;
};

class Stress : public SpaceOfC, public testing::WithParamInterface<spillway_um_paging> {
 protected:
  // 256 pages of 64 KiB with room for 16 near, less than eight threads request.
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    if (GetParam() == SPILLWAY_UM_PAGING_MEMFD) {
      GTEST_SKIP() << "TSan takes mapping a page anew for a write";
    }
#endif
    spillway_um_options wanted = options();
    wanted.near_bytes = 16 * kPage;
    wanted.capacity_bytes = 256 * kPage;
    wanted.paging = GetParam();
    const spillway_um_status status = spillway_um_create(&wanted, &space);
    if (GetParam() == SPILLWAY_UM_PAGING_UFFD && status == SPILLWAY_UM_FAILED) {
      GTEST_SKIP() << spillway_um_last_error();
    }
    ASSERT_EQ(status, SPILLWAY_UM_OK) << spillway_um_last_error();
  }
};

TEST_P(Stress, EightThreadsLoseNoByteAndTheCountersAddUp) {
  const auto end = std::chrono::steady_clock::now() + duration();
  std::vector<Tally> tallies(8);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < tallies.size(); ++i) {
    threads.emplace_back([&, i] { tallies[i] = Worker{space, i + 1, i == 0}.work(end); });
  }
  for (std::thread& thread : threads) thread.join();
  Tally all{.allocations = 1};  // the first mark's measurement of the link
  for (const Tally& each : tallies) {
    all.allocations += each.allocations;
    all.touches += each.touches;
    all.wrong += each.wrong;
  }
  EXPECT_EQ(all.wrong, 0U);
  EXPECT_EQ(spillway_um_synchronize(space), SPILLWAY_UM_OK);
  const spillway_um_counters now = counters();
  EXPECT_GT(all.allocations, 100U);
  EXPECT_EQ(now.allocations, all.allocations);
  EXPECT_EQ(now.frees, all.allocations);
  EXPECT_EQ(now.touches, all.touches);
  EXPECT_EQ(now.allocated_bytes, 0U);
  EXPECT_EQ(now.near_peak_bytes, 16 * kPage);
  EXPECT_GT(now.evictions, 0U);
  EXPECT_GE(now.bytes_offloaded, now.bytes_prefetched / 2);
  // A prefetch that ended after its block was freed may have left pages near; all can be reclaimed.
  std::byte* const whole = take(256 * kPage);
  EXPECT_EQ(spillway_um_discard(space, whole, 256 * kPage), SPILLWAY_UM_OK);
  EXPECT_EQ(counters().near_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(Uffd, Stress, testing::Values(SPILLWAY_UM_PAGING_UFFD));
INSTANTIATE_TEST_SUITE_P(Memfd, Stress, testing::Values(SPILLWAY_UM_PAGING_MEMFD));

}  // namespace
}  // namespace spillway::dropin
