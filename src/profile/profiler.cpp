#include "src/profile/profiler.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "src/execute/executor.h"
#include "src/profile/measuring_time.h"
#include "src/profile/scratch_launch.h"
#include "src/profile/scratch_ring.h"

namespace spillway {
namespace {

using prefetch::TaskId;
using um::Bytes;

using Clock = std::chrono::steady_clock;

constexpr Bytes kWhole{4096};  // what is cleared at a time

// The most that any task needs with its first algorithm.
Bytes smallest_ring(const Step& step) {
  Bytes max;
  for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
    max = std::max(max, ScratchLaunch::size(step, TaskId(t), 0));
  }
  return max;
}

// Runs the tasks of a step in order, again and again, each time with another algorithm where a
// task has several, and notes how long each takes. To be made and used by work of `stream`.
class TaskTimer {
 public:
  TaskTimer(const Step& step, const Backend& backend, um::Range scratch, um::Stream& stream)
      : stream_{stream}, ring_{scratch} {
    backend.clear(scratch);
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

  // One run of the step for each algorithm: done or, on a GPU, given. `on_task` is called before
  // each task.
  template <class OnTask>
  void run(bool is_timed, const OnTask& on_task) {
    for (std::size_t round = 0; round < rounds_; ++round) {
      for (std::vector<Candidate>& candidates : tasks_) {
        on_task();
        Candidate& candidate = candidates[std::min(round, candidates.size() - 1)];
        candidate.launch.place(ring_);
        if (is_timed) {
          run_timed(candidate);
        } else {
          candidate.launch.run();
        }
      }
    }
  }

  [[nodiscard]] std::size_t runs_of_tasks() const { return rounds_ * tasks_.size(); }

  // By task and algorithm: the median, of two the faster; the first's where one had no room.
  // Requires: all runs have ended.
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
    std::vector<um::Nanoseconds> times;  // of the runs that have ended
  };

  void run_timed(Candidate& candidate) {
    stream_.notify([this](Clock::time_point moment) { begin_ = moment; });
    candidate.launch.run();
    stream_.notify([this, &times = candidate.times](Clock::time_point moment) {
      times.emplace_back(moment - begin_);
    });
  }

  um::Stream& stream_;
  ScratchRing ring_;
  Clock::time_point begin_;  // of the last timed run; for notices, which come in order
  std::vector<std::vector<Candidate>> tasks_;
  std::size_t rounds_ = 1;
};

// Three times are enough, and two where they take long; many where they take no time.
bool is_enough(std::size_t times, Clock::duration elapsed) {
  using std::chrono::seconds;
  if (times < 2) return false;
  return times < 3 ? elapsed > seconds{15} : times >= 25 || elapsed > measuring_time(seconds{1});
}

}  // namespace

prefetch::Profile measure_tasks(const Step& step, const Backend& backend, um::Memory& memory,
                                Bytes limit, um::Stream& stream, const std::stop_token& stop,
                                const OnProgress& on_progress) {
  prefetch::Profile profile{.source = "measured, " + backend.description(),
                            .graph = prefetch::fingerprint(step.graph)};
  const um::Block scratch{memory, std::max(um::round_down(limit, kWhole), smallest_ring(step))};
  std::optional<TaskTimer> timer;
  double done = 0;
  const auto pass = [&](bool is_timed) {
    stream.enqueue([&, is_timed] {
      if (!timer) timer.emplace(step, backend, scratch.bytes(), stream);
      constexpr std::size_t kUsualPasses = 4;
      const auto all = static_cast<double>(kUsualPasses * timer->runs_of_tasks());
      timer->run(is_timed, [&] {
        if (stop.stop_requested()) throw Interrupted{};
        if (done < all) on_progress(done++ / all);
      });
    });
    stream.synchronize();
  };
  pass(false);  // warms up
  const Clock::time_point begin = Clock::now();
  for (std::size_t times = 0; !is_enough(times, Clock::now() - begin); ++times) pass(true);
  on_progress(1);
  profile.durations = timer->times(step.graph);
  return profile;
}

}  // namespace spillway
