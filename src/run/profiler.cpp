#include "src/run/profiler.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "prefetch/files/machine.h"
#include "src/program/micro_batches.h"
#include "src/run/executor.h"
#include "src/run/scratch_ring.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr const char* kVariable = "SPILLWAY_MEASURING_TIME";

double factor() {
  const char* const variable = std::getenv(kVariable);
  const std::string_view text = variable == nullptr ? "1" : variable;
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && stop == text.data() + text.size() && value > 0 && value <= 1) {
    return value;
  }
  throw um::Error{std::string{kVariable} + "=" + std::string{text} +
                  " is no factor over 0 and at most 1"};
}

using prefetch::TaskId;
using um::Bytes;
using um::Nanoseconds;

using Clock = std::chrono::steady_clock;

constexpr Bytes kWhole{4096};  // the unit of clearing

// Returns the most bytes that any task needs with its first algorithm.
Bytes smallest_ring(const Step& step) {
  Bytes max;
  for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
    max = std::max(max, ScratchLaunch::size(step, TaskId(t), 0));
  }
  return max;
}

// The shortest exact run on a stream without free notices: launches and notices of a GPU add
// several microseconds to each run.
constexpr Nanoseconds kExactRun{std::chrono::microseconds{250}};

// One algorithm of a task, with the times of its runs. A run is a batch of launches.
class AlgorithmCandidate {
 public:
  // Times of runs shorter than `exact` are only estimates, and a longer batch follows.
  AlgorithmCandidate(std::uint32_t algorithm, Nanoseconds modelled, Nanoseconds exact,
                     ScratchLaunch launch)
      : algorithm_{algorithm}, modelled_{modelled}, exact_{exact}, launch_{std::move(launch)} {}

  [[nodiscard]] std::uint32_t algorithm() const { return algorithm_; }
  [[nodiscard]] ScratchLaunch& launch() { return launch_; }
  // Returns the number of launches of the next run.
  [[nodiscard]] int launches() const { return launches_; }
  // Adds a run of launches() launches that took `time` together.
  void add(Nanoseconds time) {
    estimate_ = time / launches_;
    // A clock that stands still, as of an emulated device, would make all batches longest.
    const bool is_too_short = time.count() > 0 && time < exact_;
    if (is_too_short && launches_ < kMostLaunches) {
      launches_ = longer_batch(time);
      times_.clear();  // longer times were of first launches, which initialize libraries
    } else {
      times_.insert(std::ranges::upper_bound(times_, *estimate_), *estimate_);
    }
  }

  [[nodiscard]] std::size_t runs() const { return times_.size(); }
  [[nodiscard]] bool has_time() const { return estimate_.has_value(); }
  [[nodiscard]] Nanoseconds modelled() const { return modelled_; }
  [[nodiscard]] Nanoseconds fastest() const { return times_.empty() ? *estimate_ : times_.front(); }
  [[nodiscard]] Nanoseconds median() const {
    return times_.empty() ? *estimate_ : times_[(times_.size() - 1) / 2];
  }
  // True if runs take so long that the state of the caches does not matter.
  [[nodiscard]] bool is_long() const { return has_time() && fastest() >= kLong; }
  // Returns how many of the fastest times must agree.
  [[nodiscard]] std::size_t enough() const { return is_long() || launches_ > 1 ? 2 : 5; }
  [[nodiscard]] bool is_settled() const {
    if (runs() >= kMostRuns) return true;
    return runs() >= enough() && 10 * times_[enough() - 1] <= 11 * fastest();
  }

 private:
  static constexpr Nanoseconds kLong{std::chrono::milliseconds{2}};
  static constexpr std::size_t kMostRuns = 25;
  static constexpr int kMostLaunches = 256;

  // Returns the launches of a run that takes `exact_` and some more, if this many took `time`.
  // Grows at most tenfold at a time, like Google Benchmark, since short times are inexact.
  [[nodiscard]] int longer_batch(Nanoseconds time) const {
    const double factor =
        1.4 * static_cast<double>(exact_.count()) / static_cast<double>(time.count());
    return std::min(kMostLaunches, static_cast<int>(launches_ * std::clamp(factor, 2.0, 10.0)));
  }

  std::uint32_t algorithm_;
  Nanoseconds modelled_;
  Nanoseconds exact_;
  ScratchLaunch launch_;
  int launches_ = 1;
  std::optional<Nanoseconds> estimate_;  // of a launch, by the last run
  std::vector<Nanoseconds> times_;       // of a launch, by each run that was long enough, sorted
};

// Expected durations in nanoseconds.
struct Expected {
  double first = 0;    // first runs of candidates without a time
  double repeats = 0;  // all other runs
  double step = 0;     // each task with its first algorithm
};

// Returns the most time for repeats if a step takes `step` nanoseconds.
double most_time(double step) {
  const auto usual = static_cast<double>(measuring_time(std::chrono::seconds{1}).count());
  return std::max(usual, kRepeatedSteps * step);
}

// Runs the tasks of a step in order, in rounds, and records how long each takes. Each task has one
// of its algorithms per round. To be made and used by work of `stream`; times are complete when
// that work has ended.
class TaskTimer {
 public:
  TaskTimer(const Step& step, const Backend& backend, um::Range scratch, um::Stream& stream)
      : stream_{stream},
        ring_{scratch},
        exact_run_{stream.has_free_notices() ? Nanoseconds{0} : kExactRun},
        alike_{first_alike(step.graph)} {
    backend.clear(scratch);
    const prefetch::Profile model =
        prefetch::model_profile(step.graph, prefetch::find_machine("host"));
    for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
      std::vector<AlgorithmCandidate>& candidates = tasks_.emplace_back();
      if (alike_[t] != TaskId(t)) continue;
      for (std::uint32_t a = 0; a < step.graph.tasks[t].algorithms.size(); ++a) {
        if (ScratchLaunch::size(step, TaskId(t), a).count() > scratch.size()) continue;
        candidates.emplace_back(a, model.durations[t][a], exact_run_,
                                ScratchLaunch{step, TaskId(t), a, backend});
      }
    }
  }

  // Chooses the next round: candidates with too few times, and short ones so that caches hold what
  // they would hold in training, except where batches fill the caches anyway. Returns false when
  // all are measured.
  bool choose() {
    chosen_.clear();
    double room = most_time(step_time()) - static_cast<double>(repeated_);
    bool is_any_wanted = false;
    for (std::vector<AlgorithmCandidate>& candidates : tasks_) {
      if (candidates.empty()) continue;
      AlgorithmCandidate& candidate = neediest(candidates);
      const bool is_wanted = !candidate.is_settled();
      if (candidate.has_time()) {
        const bool is_filler = exact_run_ == Nanoseconds{0} && !candidate.is_long();
        const double cost = run_time(candidate);
        if (cost > room || !(is_wanted || is_filler)) continue;
        room -= cost;
      }
      is_any_wanted = is_any_wanted || is_wanted;
      chosen_.push_back(&candidate);
    }
    return is_any_wanted;
  }

  // Runs the chosen candidates, or submits them on a GPU. Calls `on_task` before each task with the
  // fraction of the time that has passed.
  template <class OnTask>
  void run(const OnTask& on_task) {
    const Expected expected = expect();
    const std::int64_t before = passed_;
    Expected so_far;
    for (AlgorithmCandidate* const candidate : chosen_) {
      on_task(fraction(expected, so_far, static_cast<double>(passed_ - before)));
      (candidate->has_time() ? so_far.repeats : so_far.first) += run_time(*candidate);
      candidate->launch().place(ring_);
      run_timed(*candidate);
    }
  }

  // Returns times by task and algorithm; the first algorithm's time for one that did not fit.
  [[nodiscard]] std::vector<std::vector<Nanoseconds>> times(const prefetch::TaskGraph& graph) {
    std::vector<std::vector<Nanoseconds>> result;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      if (alike_[t] != TaskId(t)) {
        const std::vector<Nanoseconds> times = result[static_cast<std::size_t>(alike_[t])];
        result.push_back(times);
        continue;
      }
      std::vector<Nanoseconds>& times = result.emplace_back();
      for (const AlgorithmCandidate& candidate : tasks_[t]) {
        times.resize(std::max(times.size(), std::size_t{candidate.algorithm()}),
                     times.empty() ? candidate.median() : times.front());
        times.push_back(candidate.median());
      }
      times.resize(graph.tasks[t].algorithms.size(), times.front());
    }
    return result;
  }

 private:
  // Returns the unsettled candidate with the fewest runs, or the first if all are settled.
  static AlgorithmCandidate& neediest(std::vector<AlgorithmCandidate>& candidates) {
    AlgorithmCandidate* least = nullptr;
    for (AlgorithmCandidate& candidate : candidates) {
      if (candidate.is_settled()) continue;
      if (least == nullptr || candidate.runs() < least->runs()) least = &candidate;
    }
    return least == nullptr ? candidates.front() : *least;
  }

  // Returns the measured time, otherwise the modelled one scaled by the slowness of the others.
  [[nodiscard]] double time_of(const AlgorithmCandidate& candidate) const {
    if (candidate.has_time()) return static_cast<double>(candidate.fastest().count());
    return slowness_ * static_cast<double>(candidate.modelled().count());
  }
  // Returns the time of the next run.
  [[nodiscard]] double run_time(const AlgorithmCandidate& candidate) const {
    return candidate.launches() * time_of(candidate);
  }
  // Returns the time of a run that is exact.
  [[nodiscard]] double exact_run_time(const AlgorithmCandidate& candidate) const {
    return std::max(time_of(candidate), static_cast<double>(exact_run_.count()));
  }
  [[nodiscard]] double step_time() const {
    double sum = 0;
    for (const std::vector<AlgorithmCandidate>& candidates : tasks_) {
      if (!candidates.empty()) sum += time_of(candidates.front());
    }
    return sum;
  }

  [[nodiscard]] Expected expect() {
    double known = 0;
    double modelled = 0;
    for (const std::vector<AlgorithmCandidate>& candidates : tasks_) {
      for (const AlgorithmCandidate& candidate : candidates) {
        if (!candidate.has_time()) continue;
        known += static_cast<double>(candidate.fastest().count());
        modelled += static_cast<double>(candidate.modelled().count());
      }
    }
    if (modelled > 0) slowness_ = known / modelled;
    Expected expected{.step = step_time()};
    for (const std::vector<AlgorithmCandidate>& candidates : tasks_) {
      for (const AlgorithmCandidate& candidate : candidates) {
        const std::size_t left =
            candidate.enough() - std::min(candidate.runs(), candidate.enough());
        const std::size_t first = candidate.has_time() ? 0 : 1;
        // A first run that is too short is not among the exact ones.
        const bool is_exact = time_of(candidate) >= static_cast<double>(exact_run_.count());
        const std::size_t repeats = is_exact ? left - first : left;
        expected.first += static_cast<double>(first) * time_of(candidate);
        expected.repeats += static_cast<double>(repeats) * exact_run_time(candidate);
      }
    }
    return expected;
  }

  // Returns the fraction of the measuring time that has passed. The runs of this round so far were
  // expected to take `so_far` and have taken `time`.
  [[nodiscard]] double fraction(const Expected& expected, const Expected& so_far, double time) {
    const double known = so_far.first + so_far.repeats;
    const double slowness = time > 0 && known > 0 ? time / known : 1;
    const double most = most_time(slowness * expected.step) - static_cast<double>(repeated_);
    const double left =
        slowness * (expected.first - so_far.first) +
        std::clamp(slowness * (expected.repeats - so_far.repeats), 0.0, std::max(0.0, most));
    const auto done = static_cast<double>(passed_);
    if (done > 0) fraction_ = std::max(fraction_, done / (done + left));
    return fraction_;
  }

  void run_timed(AlgorithmCandidate& candidate) {
    stream_.notify([this](Clock::time_point moment) { begin_ = moment; });
    for (int i = 0; i < candidate.launches(); ++i) candidate.launch().run();
    stream_.notify([this, &candidate](Clock::time_point moment) {
      const Nanoseconds time = moment - begin_;
      passed_ += time.count();
      if (candidate.has_time()) repeated_ += time.count();
      candidate.add(time);
    });
  }

  um::Stream& stream_;
  ScratchRing ring_;
  const Nanoseconds exact_run_;  // shorter runs are batches; zero if notices are free
  Clock::time_point begin_;      // of the last timed run; only used by notices, which come in order
  std::vector<TaskId> alike_;    // by task
  std::vector<std::vector<AlgorithmCandidate>> tasks_;  // empty where another is measured instead
  std::vector<AlgorithmCandidate*> chosen_;
  // Nanoseconds of all runs, and of repeats alone. Notices may come from another thread.
  std::atomic<std::int64_t> passed_ = 0;
  std::atomic<std::int64_t> repeated_ = 0;
  double slowness_ = 1;  // measured over modelled
  double fraction_ = 0;  // never falls
};

}  // namespace

std::chrono::nanoseconds measuring_time(std::chrono::nanoseconds usual) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(usual * factor());
}

bool has_short_measurements() { return factor() < 1; }

prefetch::Profile measure_tasks(const Step& step, const Backend& backend, um::Memory& memory,
                                Bytes limit, um::Stream& stream, const std::stop_token& stop,
                                const OnProgress& on_progress) {
  prefetch::Profile profile{.source = "measured, " + backend.description(),
                            .graph = prefetch::fingerprint(step.graph)};
  const um::Block scratch{memory, std::max(um::round_down(limit, kWhole), smallest_ring(step))};
  std::optional<TaskTimer> timer;
  bool has_more = true;
  while (has_more) {
    stream.enqueue([&] {
      if (!timer) timer.emplace(step, backend, scratch.bytes(), stream);
      has_more = timer->choose();
      if (!has_more) return;
      timer->run([&](double fraction) {
        if (stop.stop_requested()) throw Interrupted{};
        on_progress(fraction);
      });
    });
    stream.synchronize();
  }
  on_progress(1);
  profile.durations = timer->times(step.graph);
  return profile;
}

}  // namespace spillway
