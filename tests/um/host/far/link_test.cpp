#include "um/host/far/link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "um/error.h"
#include "um/host/far/far_store.h"
#include "um/threads/back_off.h"

namespace spillway::um {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Link, QueuesTransfersBehindEachOther) {
  // 1000 bytes at 1000 B/s with 1 s latency take 2 s.
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

// 4 threads reserve 1000 transfers of 1 s each. All 4000 ends differ by whole seconds, so the last
// is 3999 s after the first.
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

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

// RFC 3720, B.4: 32 bytes of zeros, of ones, and of 0 to 31; and the check value of the CRC
// catalogue.
TEST(Crc32c, GivesThePublishedSums) {
  std::array<std::byte, 32> bytes{};
  for (const auto& sum : {crc32c, crc32c_by_table}) {
    bytes.fill(std::byte{0});
    EXPECT_EQ(sum(bytes), 0x8a9136aaU);
    bytes.fill(std::byte{0xff});
    EXPECT_EQ(sum(bytes), 0x62a8ab43U);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    EXPECT_EQ(sum(bytes), 0x46dd794eU);
    EXPECT_EQ(sum(bytes_of("123456789")), 0xe3069283U);
    EXPECT_EQ(sum({}), 0U);
  }
}

TEST(Crc32c, OfPartsIsThatOfEachPart) {
  constexpr std::size_t kPart = 24;
  std::vector<std::byte> bytes(7 * kPart);  // one group of four and three single parts
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i);
  std::array<std::uint32_t, 7> sums{};
  crc32c_of_parts(bytes, sums);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i], crc32c_by_table(std::span{bytes}.subspan(i * kPart, kPart)));
  }
}

// Sizes on both sides of the streaming limit (64 KiB), with and without a remainder; starts on and
// off a cache line. Bytes around the target must not change.
TEST(CopyBytes, CopiesExactlyTheBytesAskedFor) {
  std::mt19937 random{1};
  std::vector<std::byte> source(300 << 10);
  for (std::byte& b : source) b = static_cast<std::byte>(random() % 255 + 1);
  alignas(64) static std::array<std::byte, 300 << 10> target;
  for (const std::size_t size : {0UL, 1UL, 4096UL, 65535UL, 65536UL, 65600UL, 65601UL, 262144UL}) {
    for (const std::size_t start : {64UL, 65UL}) {
      target.fill(std::byte{0});
      copy_bytes(std::span{target}.subspan(start, size), std::span{source}.first(size));
      EXPECT_EQ(target[start - 1], std::byte{0});
      EXPECT_TRUE(std::equal(source.begin(), source.begin() + static_cast<long>(size),
                             target.begin() + static_cast<long>(start)));
      EXPECT_EQ(target.at(start + size), std::byte{0});
    }
  }
}

TEST(CopyBytes, RefusesRangesOfDifferentSize) {
  std::array<std::byte, 2> two{};
  std::array<std::byte, 1> one{};
  EXPECT_THROW(copy_bytes(two, one), ContractError);
}

}  // namespace
}  // namespace spillway::um
