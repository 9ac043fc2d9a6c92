#include "src/profiler.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "src/executor.h"
#include "src/scratch_launch.h"

namespace spillway {
namespace {

using prefetch::TaskId;
using um::Bytes;

// Room for every task with every algorithm, as far as `limit` allows; at least for every task's
// first.
Bytes scratch_size(const Step& step, Bytes limit) {
  Bytes most;
  Bytes least;
  for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
    least = std::max(least, ScratchLaunch::size(step, TaskId(t), 0));
    for (std::uint32_t a = 0; a < step.graph.tasks[t].algorithms.size(); ++a) {
      most = std::max(most, ScratchLaunch::size(step, TaskId(t), a));
    }
  }
  return std::max(least, std::min(most, limit));
}

um::Nanoseconds median_time(ScratchLaunch& launch) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kEnough = std::chrono::milliseconds{60};
  constexpr std::size_t kRuns = 3;
  launch.run();
  std::vector<um::Nanoseconds> times;
  const Clock::time_point start = Clock::now();
  do {
    const Clock::time_point begin = Clock::now();
    launch.run();
    times.emplace_back(Clock::now() - begin);
  } while (times.size() < kRuns && Clock::now() - start < kEnough);
  std::ranges::sort(times);
  return times[(times.size() - 1) / 2];
}

std::vector<um::Nanoseconds> measure_task(const Step& step, TaskId task, const Backend& backend,
                                          const um::Block& scratch) {
  std::vector<um::Nanoseconds> times;
  for (std::uint32_t a = 0; a < step.graph[task].algorithms.size(); ++a) {
    if (ScratchLaunch::size(step, task, a) > scratch.size()) {
      times.push_back(times.front());
      continue;
    }
    ScratchLaunch launch{step, task, a, backend, scratch.bytes()};
    times.push_back(median_time(launch));
  }
  return times;
}

}  // namespace

prefetch::Profile measure_tasks(const Step& step, const Backend& backend, um::Memory& memory,
                                Bytes limit, um::Stream& stream, const std::atomic<bool>& stop,
                                const OnProgress& on_progress) {
  prefetch::Profile profile{.source = "measured, " + backend.description(),
                            .graph = prefetch::fingerprint(step.graph)};
  const um::Block scratch{memory, scratch_size(step, limit)};
  stream.enqueue([&] {
    const std::size_t count = step.graph.tasks.size();
    for (std::size_t t = 0; t < count; ++t) {
      if (stop) throw Interrupted{};
      profile.durations.push_back(measure_task(step, TaskId(t), backend, scratch));
      on_progress(static_cast<double>(t + 1) / static_cast<double>(count));
    }
  });
  stream.synchronize();
  return profile;
}

}  // namespace spillway
