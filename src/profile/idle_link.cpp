#include "src/profile/idle_link.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "src/execute/executor.h"
#include "src/profile/measuring_time.h"

namespace spillway {
namespace {

using um::Bytes;
using um::Nanoseconds;

constexpr int kRounds = 8;
constexpr auto kLongest = std::chrono::milliseconds{200};  // of all rounds but the first

void keep_shorter(Nanoseconds& shortest, Nanoseconds time) { shortest = std::min(shortest, time); }

void time_one_way(LinkUnderTest& link, Bytes page, IdleLinkTimes& times) {
  const LinkUnderTest::Part large{.offset = {}, .size = link.size()};
  const LinkUnderTest::Part small{.offset = {}, .size = page};
  keep_shorter(times.away.of_large, link.move_away(large));
  keep_shorter(times.back.of_large, link.move_back(large));
  keep_shorter(times.away.of_small, link.move_away(small));
  keep_shorter(times.back.of_small, link.move_back(small));
}

void time_exchange(LinkUnderTest& link, Bytes page, ExchangeTimes& times) {
  const Bytes half = um::round_down(Bytes{link.size().count() / 2}, page);
  if (half == Bytes{}) return;
  const LinkUnderTest::Part first{.offset = {}, .size = half};
  const LinkUnderTest::Part second{.offset = half, .size = half};
  keep_shorter(times.away, link.move_away(first));
  keep_shorter(times.both, link.exchange(second, first));
  keep_shorter(times.back, link.move_back(second));
}

}  // namespace

Nanoseconds MoveTimes::latency() const {
  const double of_bytes = static_cast<double>(of_large.count()) *
                          static_cast<double>(small.count()) / static_cast<double>(large.count());
  return std::max(Nanoseconds{0}, of_small - Nanoseconds{static_cast<std::int64_t>(of_bytes)});
}

bool ExchangeTimes::is_duplex() const {
  return both == Nanoseconds::max() || both < std::max(away, back) + std::min(away, back) / 2;
}

IdleLinkTimes measure_idle_link(LinkUnderTest& link, Bytes page, const std::stop_token& stop) {
  const MoveTimes one_way{.small = page, .large = link.size()};
  IdleLinkTimes times{.away = one_way, .back = one_way, .exchange = {}};
  const auto end = std::chrono::steady_clock::now() + measuring_time(kLongest);
  for (int i = 0; i < kRounds; ++i) {
    if (stop.stop_requested()) throw Interrupted{};
    if (i > 0 && std::chrono::steady_clock::now() > end) break;
    time_one_way(link, page, times);
    time_exchange(link, page, times.exchange);
  }
  return times;
}

}  // namespace spillway
