#include "src/run/repeated_launch.h"

#include <algorithm>
#include <cstdint>

#include "src/run/scratch_ring.h"

namespace spillway {
namespace {

// Enough that a GPU starts the next run without the host, and few enough to end soon.
constexpr int kUnderWay = 2;

constexpr um::Nanoseconds kLongestLoad{std::chrono::milliseconds{100}};  // of the load's task
constexpr um::Nanoseconds kAlone{std::chrono::milliseconds{200}};        // for all undisturbed runs
constexpr std::int64_t kMostAlone = 7;

int runs_alone(um::Nanoseconds each) {
  const std::int64_t runs = kAlone / std::max(each, um::Nanoseconds{1});
  return static_cast<int>(std::clamp<std::int64_t>(runs, 1, kMostAlone));
}

// Whether `other` is a better load than `best`.
bool is_better(um::Nanoseconds other, um::Nanoseconds best) {
  if (best > kLongestLoad) return other < best;
  return other <= kLongestLoad && other > best;
}

}  // namespace

std::optional<LoadTask> find_load(const Step& step, const prefetch::Profile& profile,
                                  um::Bytes limit) {
  std::optional<LoadTask> best;
  for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
    const prefetch::TaskId task{static_cast<std::uint32_t>(t)};
    if (4 * ScratchLaunch::size(step, task, 0) > 3 * limit) continue;
    const um::Nanoseconds time = profile(task, 0);
    if (!best || is_better(time, best->time)) best = {.task = task, .time = time};
  }
  return best;
}

RepeatedLaunch::RepeatedLaunch(const Step& step, const LoadTask& load, const Backend& backend,
                               um::Memory& memory, um::Stream& stream)
    : scratch_{memory, ScratchLaunch::size(step, load.task, 0)},
      stream_{stream},
      runs_alone_{runs_alone(load.time)} {
  stream_.enqueue([&step, task = load.task, &backend, this] {
    ScratchRing ring{scratch_.bytes()};
    launch_.emplace(step, task, 0, backend);
    launch_->place(ring);
    time_alone();
  });
  stream_.synchronize();
  stream_.enqueue([this] { repeat(); });
}

RepeatedLaunch::~RepeatedLaunch() {
  ask_to_stop();
  try {
    stream_.synchronize();
  } catch (...) {  // another exception is in flight, or stop() has thrown this one
  }
}

// Updates the shortest undisturbed time with a few runs. Each begins when the one before ends, as
// in repeat(), so that the latency of a launch on a GPU does not count.
void RepeatedLaunch::time_alone() {
  stream_.notify([this](Clock::time_point moment) { begin_ = moment; });
  for (int i = 0; i < runs_alone_; ++i) {
    launch_->run();
    stream_.notify([this](Clock::time_point moment) {
      alone_ = std::min<um::Nanoseconds>(alone_, moment - begin_);
      begin_ = moment;
    });
  }
}

void RepeatedLaunch::repeat() {
  stream_.notify([this](Clock::time_point moment) { begin_ = moment; });
  for (;;) {
    {
      std::unique_lock lock{mutex_};
      changed_.wait(lock, [this] { return under_way_ < kUnderWay; });
      if (is_stopped_) return;
      ++under_way_;
    }
    launch_->run();
    stream_.notify([this](Clock::time_point moment) { end_run(moment); });
  }
}

void RepeatedLaunch::end_run(Clock::time_point moment) {
  const std::lock_guard lock{mutex_};
  --under_way_;
  ++ended_;
  end_ = moment;
  changed_.notify_all();
}

void RepeatedLaunch::ask_to_stop() {
  const std::lock_guard lock{mutex_};
  is_stopped_ = true;
}

std::optional<double> RepeatedLaunch::stop() {
  ask_to_stop();
  stream_.synchronize();
  const um::Nanoseconds time = end_ - begin_;
  if (ended_ == 0 || time.count() <= 0) return std::nullopt;
  stream_.enqueue([this] { time_alone(); });
  stream_.synchronize();
  return static_cast<double>((alone_ * ended_).count()) / static_cast<double>(time.count());
}

}  // namespace spillway
