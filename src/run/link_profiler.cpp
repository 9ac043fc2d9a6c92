#include "src/run/link_profiler.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <variant>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/ops/far_kernel.h"
#include "src/program/step.h"
#include "src/run/executor.h"
#include "src/run/far_updates.h"
#include "src/run/loaded_link.h"
#include "src/run/profiler.h"
#include "src/run/repeated_launch.h"
#include "um/options.h"

namespace spillway {
namespace {

/// Starts a load that keeps the processor busy during a measurement; returns null for no load.
using StartLoad = std::function<std::unique_ptr<RepeatedLaunch>()>;

using um::Bytes;
using Clock = std::chrono::steady_clock;

constexpr Bytes kUnit{4096};
constexpr auto kTime = std::chrono::milliseconds{250};  // per measurement

std::optional<UpdateParameters> find_update(const Step& step) {
  for (const auto* const launches : {&step.launches, &step.far_launches}) {
    for (const Launch& launch : *launches) {
      const auto* const update = std::get_if<UpdateParameters>(&launch.operation);
      if (update != nullptr) return *update;
    }
  }
  return std::nullopt;
}

// Lays out the updated tensors (parameters, optimizer state) and the gradient as consecutive blocks
// of `block` bytes.
FarOperands operands_in(Bytes block, std::size_t updated) {
  FarOperands operands{.updated = {}, .gradient = updated * block};
  for (std::size_t i = 0; i < updated; ++i) operands.updated.push_back(i * block);
  return operands;
}

// Measures the far side's update rate under a load, and how much that slows the load down:
// LinkProfile::far_update and compute_speed_while_updating. Runs updates like those of `step` on
// the far memory of `link`, which is all near before and afterwards. Leaves `result` unchanged
// if the device does not update on the far side. Throws: um::Error when far memory fails;
// Interrupted when `stop` is requested.
void measure_far_update(LinkUnderTest& link, const Step& step, const Backend& backend,
                        const StartLoad& start_load, const std::stop_token& stop,
                        prefetch::LinkProfile& result) {
  um::FarSide* const far = link.far_side();
  const std::optional<UpdateParameters> update = find_update(step);
  if (far == nullptr || !update || backend.far_update_support() == FarUpdateSupport::kNone) return;
  const std::size_t updated = update->write_count();
  const Bytes block = um::round_down(Bytes{link.size().count() / (updated + 1)}, kUnit);
  if (block == Bytes{}) return;
  const FarOperands operands = operands_in(block, updated);
  const std::size_t count = block.count() / sizeof(float);
  const auto kernel = make_far_kernel(*update, {.begin = 0, .end = count}, count);
  const LinkUnderTest::Part whole{.offset = {}, .size = link.size()};
  link.move_away(whole);
  FarProcessor processor{*far};
  const StepContext context{.learning_rate = 0.001F};
  processor.run(*kernel, context, operands);
  const auto load = start_load();
  const auto measured_for = measuring_time(kTime);
  const Clock::time_point begin = Clock::now();
  Bytes bytes;
  do {
    if (stop.stop_requested()) throw Interrupted{};
    processor.run(*kernel, context, operands);
    bytes += (2 * updated + 1) * block;
  } while (Clock::now() - begin < measured_for);
  const um::Nanoseconds time = Clock::now() - begin;
  const auto speed = load ? load->stop() : std::nullopt;
  result.far_update = um::Bandwidth{static_cast<double>(bytes.count()) / um::seconds(time)};
  if (speed) result.compute_speed_while_updating = std::clamp(*speed, 0.05, 1.0);
  link.move_back(whole);
}

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

constexpr Bytes kMoved{32ULL << 20U};                       // at a time
constexpr auto kDuration = std::chrono::milliseconds{800};  // of the measurement

// Whole pages: kMoved, or a quarter of `limit` if that is less.
Bytes moved_size(Bytes page, Bytes limit) {
  const Bytes quarter = um::round_down(Bytes{limit.count() / 4}, page);
  return std::max(page, std::min(um::round_up(kMoved, page), quarter));
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
  round_trip();  // the first write to far memory waits until the system provides it
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
                               // Unified memory is unmapped while it moves.
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
