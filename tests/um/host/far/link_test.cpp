#include "um/host/far/link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "um/threads/back_off.h"

namespace spillway::um {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Link, QueuesTransfersBehindEachOther) {
  // 1000 bytes at 1000 B/s and 1 s latency: 2 s each.
  Link link{{.bandwidth = Bandwidth{1000}, .latency = seconds{1}}};
  const auto before = Link::Clock::now();
  const auto first = link.reserve(1000_B);
  const auto after = Link::Clock::now();
  const auto second = link.reserve(1000_B);
  const auto third = link.reserve(500_B);
  EXPECT_GE(first, before + seconds{2});
  EXPECT_LE(first, after + seconds{2});
  EXPECT_EQ(second - first, seconds{2});
  EXPECT_EQ(third - second, milliseconds{1500});
}

TEST(Link, StartsNowWhenItHasBeenIdle) {
  Link link{{.bandwidth = Bandwidth{1e9}}};
  sleep_until(link.reserve(1000_B));  // 1 us
  const auto now = Link::Clock::now();
  EXPECT_GE(link.reserve(1000_B), now + std::chrono::microseconds{1});
}

TEST(Link, CountsOnlyTheLatencyWithoutABandwidth) {
  Link link{{.latency = seconds{1}}};
  const auto first = link.reserve(1_GiB);
  EXPECT_EQ(link.reserve(1_GiB) - first, seconds{1});
  EXPECT_EQ(link.time_of(1_GiB), Nanoseconds{0});
}

TEST(Link, TellsHowLongAPartTakesWithoutTheLatency) {
  const Link link{{.bandwidth = Bandwidth{1000}, .latency = seconds{1}}};
  EXPECT_EQ(link.time_of(500_B), milliseconds{500});
}

// 4 threads take 1000 transfers of 1 s each: all 4000 ends differ by whole seconds and none is
// given twice, so the last is 3999 s after the first.
TEST(Link, GivesNoTimeTwiceToManyThreads) {
  Link link{{.bandwidth = Bandwidth{1}}};
  std::vector<std::vector<Link::Clock::time_point>> ends(4);
  std::vector<std::thread> threads;
  threads.reserve(ends.size());
  for (auto& mine : ends) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) mine.push_back(link.reserve(1_B));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Link::Clock::time_point> all;
  for (const auto& some : ends) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i) ASSERT_EQ(all[i] - all[i - 1], seconds{1});
}

}  // namespace
}  // namespace spillway::um
