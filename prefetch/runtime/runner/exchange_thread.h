#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"

namespace spillway::prefetch {

/// A thread that does the same piece of work beside each step.
///
/// Thread safety: one thread at a time.
class SideThread {
 public:
  /// The thread inherits the affinity of the caller: construct it on one that is not bound to the
  /// processors of the kernels. `work` throws nothing.
  explicit SideThread(std::function<void()> work);
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;
  ~SideThread();  // waits for the work under way

  /// Has the work done once. Requires: none is under way.
  void begin();
  /// Returns when none is under way.
  void wait() noexcept;

 private:
  void run();

  std::function<void()> work_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool is_busy_ = false;
  bool is_stopped_ = false;

  std::thread thread_;  // last: it uses all else
};

/// Runs the exchanges of a plan between ranks beside its steps, in order, each as soon as the runs
/// that it waits for have ended, on a thread of its own. Without exchanges it has none and does
/// nothing.
///
/// Thread safety: one thread at a time, but for end_run().
class ExchangeThread {
 public:
  /// Runs one: an index into TaskGraph::exchanges. Returns when the sums are there.
  using Exchange = std::function<void(std::uint32_t exchange)>;
  using Clock = std::chrono::steady_clock;

  /// The thread inherits the affinity of the caller: construct it on one that is not bound to the
  /// processors of the kernels. The plan outlives it.
  explicit ExchangeThread(const Plan& plan);

  /// A step began at `begin`. `exchange` outlives it.
  void begin_step(Clock::time_point begin, const Exchange& exchange);
  /// Runs up to number `runs`, from 1, have ended. Any thread, one at a time.
  void end_run(std::uint32_t runs);
  /// Returns when so many exchanges have ended. Throws: what one failed with.
  void wait_for(std::uint32_t exchanges);
  /// Waits until all have ended. Throws: likewise.
  void end_step();
  /// The step has failed: no further exchange begins; waits for the one under way.
  void abandon() noexcept;

  /// When they began and ended in the last step, by exchange run.
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  void run_all() noexcept;
  [[nodiscard]] bool wait_for_runs(std::uint32_t runs);
  void note_end();

  const Plan& plan_;
  // Of the step, which the thread reads while it is under way:
  Clock::time_point begin_;
  const Exchange* exchange_ = nullptr;
  std::vector<Interval> intervals_;  // which the thread writes meanwhile

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::uint32_t runs_ = 0;       // that have ended
  std::uint32_t exchanges_ = 0;  // likewise
  bool is_abandoned_ = false;
  std::exception_ptr failure_;

  std::optional<SideThread> thread_;  // last: it uses all else
};

}  // namespace spillway::prefetch
