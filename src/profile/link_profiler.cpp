#include "src/profile/link_profiler.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "src/execute/executor.h"
#include "src/profile/loaded_link.h"
#include "src/profile/repeated_launch.h"
#include "src/profile/scratch_launch.h"

namespace spillway {
namespace {

using prefetch::TaskId;
using um::Bytes;
using Clock = std::chrono::steady_clock;

constexpr Bytes kMoved{32ULL << 20U};                       // at a time
constexpr auto kDuration = std::chrono::milliseconds{800};  // of the measurement

// The longest task that leaves a quarter of `limit` free.
std::optional<TaskId> find_load(const Step& step, const prefetch::Profile& profile, Bytes limit) {
  std::optional<TaskId> longest;
  for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
    const TaskId task{static_cast<std::uint32_t>(t)};
    const bool fits = 4 * ScratchLaunch::size(step, task, 0) <= 3 * limit;
    if (fits && (!longest || profile(task, 0) > profile(*longest, 0))) longest = task;
  }
  return longest;
}

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
  std::unique_ptr<RepeatedLaunch> load;
  if (const std::optional<TaskId> task = find_load(step, profile, subject.limit)) {
    load = std::make_unique<RepeatedLaunch>(step, *task, backend, device.memory(), stream);
  }
  const auto round_trip = [&] {
    if (stop.stop_requested()) throw Interrupted{};
    link->move_away();
    link->move_back();
  };
  round_trip();  // the first write to far memory waits for the system to give it
  link->forget();
  const Clock::time_point begin = Clock::now();
  do round_trip();
  while (Clock::now() - begin < kDuration);

  prefetch::LinkProfile result{
      .offload = link->away(), .prefetch = link->back(), .faults = device.faults()};
  result.faults.time += subject.options.fault_latency;
  if (const auto speed = load ? load->stop() : std::nullopt) {
    result.compute_speed_while_moving = std::clamp(*speed, 0.05, 1.0);
  }
  return result;
}

}  // namespace spillway
