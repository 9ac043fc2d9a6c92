#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/program/step.h"
#include "src/run/scratch_ring.h"
#include "um/bytes.h"
#include "um/memory.h"
#include "um/stream.h"

namespace spillway {

/// A task to keep the processor busy with.
struct LoadTask {
  prefetch::TaskId task;
  um::Nanoseconds time;  ///< with its first algorithm
};

/// Returns the longest task of `step` that takes at most a tenth of a second, otherwise the
/// shortest task. Considers only tasks that leave a quarter of `limit` free while they repeat;
/// nullopt if none does. `profile` has their times.
[[nodiscard]] std::optional<LoadTask> find_load(const Step& step, const prefetch::Profile& profile,
                                                um::Bytes limit);

/// Repeats one launch of a step on a stream, from construction on, to keep the processor busy;
/// reports its speed.
class RepeatedLaunch {
 public:
  /// Times the undisturbed launch first, and again in stop(), for a fifth of a second or one run:
  /// new memory may be slow. Everything must outlive this object. Throws: um::OutOfMemory.
  RepeatedLaunch(const Step& step, const LoadTask& load, const Backend& backend, um::Memory& memory,
                 um::Stream& stream);
  RepeatedLaunch(const RepeatedLaunch&) = delete;
  RepeatedLaunch& operator=(const RepeatedLaunch&) = delete;
  ~RepeatedLaunch();

  /// Ends the runs. Returns their speed relative to the fastest undisturbed run; nullopt when no
  /// run has ended, or all took no time.
  [[nodiscard]] std::optional<double> stop();

 private:
  using Clock = std::chrono::steady_clock;

  void time_alone();
  void repeat();
  void end_run(Clock::time_point moment);
  void ask_to_stop();

  um::Block scratch_;
  um::Stream& stream_;
  std::optional<ScratchLaunch> launch_;
  const int runs_alone_;
  um::Nanoseconds alone_ = um::Nanoseconds::max();

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool is_stopped_ = false;
  int under_way_ = 0;
  int ended_ = 0;
  Clock::time_point begin_;
  Clock::time_point end_;  // of the last finished run
};

}  // namespace spillway
