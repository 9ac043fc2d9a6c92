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

/// A thread that does the same work once beside each step.
///
/// Thread safety: one thread at a time.
class SideThread {
 public:
  /// The thread inherits the affinity of the caller: construct it on a thread that is not bound to
  /// the processors of the kernels. Requires: `work` does not throw.
  explicit SideThread(std::function<void()> work);
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;
  ~SideThread();  // waits for the work in flight

  /// Starts the work once. Requires: none is in flight.
  void begin();
  /// Blocks until no work is in flight.
  void wait() noexcept;

 private:
  void run();

  std::function<void()> work_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool is_busy_ = false;
  bool is_stopped_ = false;

  std::thread thread_;  // last: uses the other members
};

/// Runs the rank exchanges of a plan beside its steps, on a thread of its own. Exchanges run in
/// order, each as soon as the runs that it waits for have ended. Without exchanges it is a no-op
/// without a thread.
///
/// Thread safety: one thread at a time, except end_run().
class ExchangeThread {
 public:
  /// Performs an exchange, an index into TaskGraph::exchanges. Returns when the sums are complete.
  using Exchange = std::function<void(std::uint32_t exchange)>;
  using Clock = std::chrono::steady_clock;

  /// The thread inherits the affinity of the caller: construct it on a thread that is not bound to
  /// the processors of the kernels. The plan must outlive it.
  explicit ExchangeThread(const Plan& plan);

  /// Starts the exchanges of a step that began at `begin`. `exchange` must outlive the step.
  void begin_step(Clock::time_point begin, const Exchange& exchange);
  /// Notes that the first `runs` runs have ended. Thread safety: any thread, one at a time.
  void end_run(std::uint32_t runs);
  /// Blocks until the first `exchanges` exchanges have ended. Throws: the error of a failed
  /// exchange.
  void wait_for(std::uint32_t exchanges);
  /// Blocks until all have ended. Throws: as wait_for().
  void end_step();
  /// Ends a failed step: starts no further exchange, and waits for the one in flight.
  void abandon() noexcept;

  /// Returns when the exchanges of the last step began and ended.
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  void run_all() noexcept;
  [[nodiscard]] bool wait_for_runs(std::uint32_t runs);
  void note_end();

  const Plan& plan_;
  // The current step, read by the thread:
  Clock::time_point begin_;
  const Exchange* exchange_ = nullptr;
  std::vector<Interval> intervals_;  // written by the thread

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::uint32_t runs_ = 0;       // finished
  std::uint32_t exchanges_ = 0;  // finished
  bool is_abandoned_ = false;
  std::exception_ptr failure_;

  std::optional<SideThread> thread_;  // last: uses the other members
};

}  // namespace spillway::prefetch
