#include "src/profile/link_profiler.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "src/execute/executor.h"
#include "src/profile/far_update_rate.h"
#include "src/profile/idle_link.h"
#include "src/profile/loaded_link.h"
#include "src/profile/measuring_time.h"
#include "src/profile/moved_bytes.h"
#include "src/profile/repeated_launch.h"

namespace spillway {
namespace {

using um::Bytes;
using um::Nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr Bytes kMoved{32ULL << 20U};                       // at a time
constexpr auto kDuration = std::chrono::milliseconds{800};  // of the measurement

// Whole pages, in what the load leaves.
Bytes moved_size(Bytes page, Bytes limit) {
  const Bytes quarter = um::round_down(Bytes{limit.count() / 4}, page);
  return std::max(page, std::min(um::round_up(kMoved, page), quarter));
}

}  // namespace

prefetch::LinkProfile measure_link(const LinkSubject& subject, const Step& step,
                                   const Backend& backend, const prefetch::Profile& profile,
                                   um::Stream& stream, const std::stop_token& stop) {
  um::Device& device = subject.device;
  const auto link = make_link_under_test(device, subject.mode, subject.options,
                                         moved_size(subject.options.page, subject.limit));
  const auto start_load = [&]() -> std::unique_ptr<RepeatedLaunch> {
    const std::optional<LoadTask> task = find_load(step, profile, subject.limit);
    if (!task) return nullptr;
    return std::make_unique<RepeatedLaunch>(step, *task, backend, device.memory(), stream);
  };
  std::unique_ptr<RepeatedLaunch> load = start_load();
  const LinkUnderTest::Part whole{.offset = {}, .size = link->size()};
  MovedBytes away;
  MovedBytes back;
  const auto round_trip = [&] {
    if (stop.stop_requested()) throw Interrupted{};
    away.add(whole.size, link->move_away(whole));
    back.add(whole.size, link->move_back(whole));
  };
  round_trip();  // the first write to far memory waits for the system to give it
  away = back = {};
  const Clock::time_point end = Clock::now() + measuring_time(kDuration);
  do round_trip();
  while (Clock::now() < end);
  const auto speed = load ? load->stop() : std::nullopt;
  load.reset();

  const IdleLinkTimes idle = measure_idle_link(*link, subject.options.page, stop);
  const Nanoseconds away_latency = idle.away.latency();
  const Nanoseconds back_latency = idle.back.latency();
  prefetch::LinkProfile result{.offload = away.bandwidth(away_latency),
                               .prefetch = back.bandwidth(back_latency),
                               .latency = std::max(away_latency, back_latency),
                               .is_duplex = idle.exchange.is_duplex(),
                               // Unified memory is unmapped as it leaves.
                               .copies_while_read = subject.mode != MemoryMode::kManaged,
                               .faults = device.faults()};
  result.faults.time += subject.options.fault_latency;
  if (speed) result.compute_speed_while_moving = std::clamp(*speed, 0.05, 1.0);
  if (subject.with_far_updates) {
    measure_far_update(*link, step, backend, start_load, stop, result);
  }
  return result;
}

}  // namespace spillway
