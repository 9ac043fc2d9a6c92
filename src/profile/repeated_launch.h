#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/profile/scratch_launch.h"
#include "src/step/step.h"
#include "um/bytes.h"
#include "um/memory.h"
#include "um/nanoseconds.h"
#include "um/stream.h"

namespace spillway {

/// A task to keep the processor busy with.
struct LoadTask {
  prefetch::TaskId task;
  um::Nanoseconds time;  ///< with its first algorithm
};

/// The longest task of `step` that takes at most a tenth of a second, else the shortest; of those
/// that leave a quarter of `limit` free while they are repeated. Nothing where none does. `profile`
/// has their times.
[[nodiscard]] std::optional<LoadTask> find_load(const Step& step, const prefetch::Profile& profile,
                                                um::Bytes limit);

/// Runs one launch of a step on a stream again and again, from its construction on, to keep the
/// processor busy, and says how fast that goes.
class RepeatedLaunch {
 public:
  /// Times the launch by itself first, and again in stop(), for a fifth of a second or once: memory
  /// may be slow while it is new. Everything must outlive it. Throws: um::OutOfMemory.
  RepeatedLaunch(const Step& step, const LoadTask& load, const Backend& backend, um::Memory& memory,
                 um::Stream& stream);
  RepeatedLaunch(const RepeatedLaunch&) = delete;
  RepeatedLaunch& operator=(const RepeatedLaunch&) = delete;
  ~RepeatedLaunch();

  /// Ends the runs. Returns their speed, 1 being that of the launch by itself, the fastest time of
  /// which counts; nothing when none has ended, or all in no time.
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

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool is_stopped_ = false;
  int under_way_ = 0;
  int ended_ = 0;
  Clock::time_point begin_;
  Clock::time_point end_;  // of the last run that has ended
};

}  // namespace spillway
