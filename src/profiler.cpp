#include "src/profiler.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "src/executor.h"
#include "src/scratch_launch.h"
#include "src/scratch_ring.h"

namespace spillway {
namespace {

using prefetch::TaskId;
using um::Bytes;

using Clock = std::chrono::steady_clock;

// The most that any task needs with its first algorithm.
Bytes smallest_ring(const Step& step) {
  Bytes most;
  for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
    most = std::max(most, ScratchLaunch::size(step, TaskId(t), 0));
  }
  return most;
}

// Runs the tasks of a step in order, again and again, each time with another algorithm where a
// task has several, and notes how long each takes.
class TaskTimer {
 public:
  TaskTimer(const Step& step, const Backend& backend, um::Range scratch) : ring_{scratch} {
    std::memset(scratch.data(), 0, scratch.size());
    for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
      std::vector<Candidate>& candidates = tasks_.emplace_back();
      for (std::uint32_t a = 0; a < step.graph.tasks[t].algorithms.size(); ++a) {
        if (ScratchLaunch::size(step, TaskId(t), a).count() > scratch.size()) continue;
        candidates.push_back(
            {.algorithm = a, .launch = {step, TaskId(t), a, backend}, .times = {}});
      }
      rounds_ = std::max(rounds_, candidates.size());
    }
  }

  // One run of the step for each algorithm. `on_task` is called before each task.
  template <class OnTask>
  void run(bool is_timed, const OnTask& on_task) {
    for (std::size_t round = 0; round < rounds_; ++round) {
      for (std::vector<Candidate>& candidates : tasks_) {
        on_task();
        Candidate& candidate = candidates[std::min(round, candidates.size() - 1)];
        candidate.launch.place(ring_);
        const Clock::time_point begin = Clock::now();
        candidate.launch.run();
        if (is_timed) candidate.times.emplace_back(Clock::now() - begin);
      }
    }
  }

  [[nodiscard]] std::size_t runs_of_tasks() const { return rounds_ * tasks_.size(); }

  // By task and algorithm: the median, of two the faster; the first's where one had no room.
  [[nodiscard]] std::vector<std::vector<um::Nanoseconds>> times(const prefetch::TaskGraph& graph) {
    std::vector<std::vector<um::Nanoseconds>> result;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      std::vector<um::Nanoseconds>& times = result.emplace_back();
      for (Candidate& candidate : tasks_[t]) {
        std::ranges::sort(candidate.times);
        const um::Nanoseconds median = candidate.times[(candidate.times.size() - 1) / 2];
        times.resize(std::max(times.size(), std::size_t{candidate.algorithm}),
                     times.empty() ? median : times.front());
        times.push_back(median);
      }
      times.resize(graph.tasks[t].algorithms.size(), times.front());
    }
    return result;
  }

 private:
  struct Candidate {
    std::uint32_t algorithm;
    ScratchLaunch launch;
    std::vector<um::Nanoseconds> times;
  };
  ScratchRing ring_;
  std::vector<std::vector<Candidate>> tasks_;
  std::size_t rounds_ = 1;
};

// Three times are enough, and two where they take long; many where they take no time.
bool is_enough(std::size_t times, Clock::duration elapsed) {
  using std::chrono::seconds;
  if (times < 2) return false;
  return times < 3 ? elapsed > seconds{15} : times >= 25 || elapsed > seconds{1};
}

}  // namespace

prefetch::Profile measure_tasks(const Step& step, const Backend& backend, um::Memory& memory,
                                Bytes limit, um::Stream& stream, const std::atomic<bool>& stop,
                                const OnProgress& on_progress) {
  prefetch::Profile profile{.source = "measured, " + backend.description(),
                            .graph = prefetch::fingerprint(step.graph)};
  const um::Block scratch{memory, std::max(limit, smallest_ring(step))};
  stream.enqueue([&] {
    TaskTimer timer{step, backend, scratch.bytes()};
    constexpr std::size_t kUsualPasses = 4;
    const auto all = static_cast<double>(kUsualPasses * timer.runs_of_tasks());
    double done = 0;
    const auto on_task = [&] {
      if (stop) throw Interrupted{};
      if (done < all) on_progress(done++ / all);
    };
    timer.run(false, on_task);  // warms up
    const Clock::time_point begin = Clock::now();
    std::size_t times = 0;
    for (; !is_enough(times, Clock::now() - begin); ++times) timer.run(true, on_task);
    on_progress(1);
    profile.durations = timer.times(step.graph);
  });
  stream.synchronize();
  return profile;
}

}  // namespace spillway
