#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "src/bench/timing_summary.h"
#include "src/ops/backend.h"
#include "um/memory.h"
#include "um/stream.h"

namespace spillway {

/// Launches the smallest kernel there is again and again, on a stream, each time when the one
/// before has ended, and times those that begin and end while they count.
class RepeatedClear {
 public:
  /// Begins. Everything must outlive it. Throws: um::OutOfMemory.
  RepeatedClear(um::Stream& stream, um::Memory& memory, const Backend& backend);
  RepeatedClear(const RepeatedClear&) = delete;
  RepeatedClear& operator=(const RepeatedClear&) = delete;
  ~RepeatedClear();

  /// Whether launches count from now on. At first they do not.
  void count(bool counts);
  /// Waits until so many have counted, but no longer than that.
  void wait_for(std::size_t launches, Seconds max);
  [[nodiscard]] std::size_t counted() const;

  struct Times {
    Samples call;   ///< how long the launching call held its thread
    Samples whole;  ///< until the kernel had ended
  };
  /// Ends. Throws: um::Error when a launch failed.
  [[nodiscard]] Times stop();

 private:
  using Clock = std::chrono::steady_clock;

  void repeat();
  void ask_to_stop();
  void end_launch(Clock::time_point moment);

  um::Block block_;
  um::Stream& stream_;
  const Backend& backend_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool is_stopped_ = false;
  bool is_under_way_ = false;
  bool counts_ = false;
  bool has_counted_throughout_ = false;  // the launch under way
  Clock::time_point begin_;
  Seconds call_{0};
  Times times_;
};

}  // namespace spillway
