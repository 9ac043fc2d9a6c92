#include "src/link_profiler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>

#include "src/executor.h"
#include "src/scratch_launch.h"

namespace spillway {
namespace {

using prefetch::TaskId;
using um::Bytes;
using Clock = std::chrono::steady_clock;

// A page fault of the host device: facts on the host device, section 1.
constexpr um::Nanoseconds kFault{5'200};
constexpr Bytes kRange{32ULL << 20U};                       // moved at a time
constexpr auto kDuration = std::chrono::milliseconds{400};  // of the measurement

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

// Moves of one direction, added up.
struct Moved {
  Bytes bytes;
  um::Nanoseconds time{0};

  [[nodiscard]] um::Bandwidth bandwidth() const {
    return um::Bandwidth{static_cast<double>(bytes.count()) * 1e9 /
                         static_cast<double>(time.count())};
  }
};

// Moves `range` to `place`, waits, and adds it up.
void move(um::Hints& hints, um::Range range, um::Place place, Moved& moved) {
  std::promise<void> done;
  const Clock::time_point begin = Clock::now();
  hints.prefetch(range, place, [&](std::exception_ptr error) {
    if (error != nullptr) {
      done.set_exception(std::move(error));
    } else {
      done.set_value();
    }
  });
  done.get_future().get();
  moved.time += Clock::now() - begin;
  moved.bytes += Bytes{range.size()};
}

// The shortest of a few runs, after one that warms up.
um::Nanoseconds time_alone(ScratchLaunch& launch) {
  um::Nanoseconds shortest = um::Nanoseconds::max();
  for (int i = 0; i < 4; ++i) {
    const Clock::time_point begin = Clock::now();
    launch.run();
    if (i > 0) shortest = std::min<um::Nanoseconds>(shortest, Clock::now() - begin);
  }
  return shortest;
}

// Runs one launch on a stream: by itself first, then again and again until told to stop, and
// counts.
class Load {
 public:
  Load(const Step& step, TaskId task, const Backend& backend, um::Memory& memory,
       um::Stream& stream)
      : scratch_{memory, ScratchLaunch::size(step, task, 0)}, stream_{stream} {
    stream_.enqueue([&step, task, &backend, this] {
      ScratchRing ring{scratch_.bytes()};
      launch_.emplace(step, task, 0, backend);
      launch_->place(ring);
      undisturbed_ = time_alone(*launch_);
    });
    stream_.synchronize();
    stream_.enqueue([this] {
      const Clock::time_point begin = Clock::now();
      while (!is_stopped_) {
        launch_->run();
        ++runs_;
        time_ = Clock::now() - begin;
      }
    });
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() {
    is_stopped_ = true;
    try {
      stream_.synchronize();
    } catch (...) {  // another exception is on its way, or stop() has thrown this one
    }
  }

  // The speed of the runs since then, 1 being that of a run before anything disturbed it. Nothing
  // when none has ended.
  [[nodiscard]] std::optional<double> stop() {
    is_stopped_ = true;
    stream_.synchronize();
    if (runs_ == 0) return std::nullopt;
    return static_cast<double>((undisturbed_ * runs_).count()) / static_cast<double>(time_.count());
  }

 private:
  um::Block scratch_;
  um::Stream& stream_;
  std::optional<ScratchLaunch> launch_;
  um::Nanoseconds undisturbed_{0};
  std::atomic<bool> is_stopped_ = false;
  int runs_ = 0;
  um::Nanoseconds time_{0};
};

}  // namespace

prefetch::LinkProfile measure_link(um::Device& device, um::ManagedOptions options, Bytes limit,
                                   const Step& step, const Backend& backend,
                                   const prefetch::Profile& profile, um::Stream& stream,
                                   const std::atomic<bool>& stop) {
  const Bytes quarter = um::round_down(Bytes{limit.count() / 4}, options.page);
  options.size = std::max(options.page, std::min(um::round_up(kRange, options.page), quarter));
  options.near = options.size;
  um::Ledger ledger{options.near};
  const auto space = device.make_managed_space(options, ledger);
  const um::Range range = space->slab();
  const um::Use overwrite{.range = range, .access = um::Access::kWrite};
  space->hints().populate(range);

  std::optional<Load> load;
  const std::optional<TaskId> task = find_load(step, profile, limit);
  if (task) load.emplace(step, *task, backend, device.memory(), stream);
  Moved out;
  Moved in;
  const auto round_trip = [&] {
    if (stop) throw Interrupted{};
    // Dirty again: a clean page would not be transferred.
    space->hints().begin_use({&overwrite, 1});
    space->hints().end_use({&overwrite, 1});
    move(space->hints(), range, um::Place::kFar, out);
    move(space->hints(), range, um::Place::kNear, in);
  };
  round_trip();  // the first write to far memory waits for the system to give it
  out = {};
  in = {};
  const Clock::time_point begin = Clock::now();
  do round_trip();
  while (Clock::now() - begin < kDuration);

  prefetch::LinkProfile link{.offload = out.bandwidth(),
                             .prefetch = in.bandwidth(),
                             .fault = kFault + options.fault_latency};
  if (const auto speed = load ? load->stop() : std::nullopt) {
    link.compute_speed_while_moving = std::clamp(*speed, 0.05, 1.0);
  }
  return link;
}

}  // namespace spillway
