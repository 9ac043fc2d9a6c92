#pragma once

#include <oneapi/tbb/task_arena.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/simulate/timeline.h"
#include "um/stream.h"

namespace spillway::prefetch {

/// Issues a plan's moves beside the running step, in order, each as soon as its condition holds,
/// from a oneTBB arena of its own. Lets the executor wait for moves.
///
/// Thread safety: completions, end_run(), fail(), nudge() and wait_for() may come from any thread;
/// the other functions are for the executor's thread.
class PlanWalker {
 public:
  /// Issues move `index` of its sequence, and arranges that `done` is called when it has ended.
  /// Returns false if the move cannot be issued now; retried after the next event or nudge(). If it
  /// throws, `done` must not be called, and the move has failed. Called from the arena, never
  /// concurrently. Moves may end in any order: a move counts once all earlier ones have ended.
  using Issue = std::function<bool(std::uint32_t index, um::Completion done)>;

  /// `copies_while_read`: offloads are copies, which are issued while tasks still read their block,
  /// and count once their readers have ended, too. Otherwise they are issued after the readers.
  ///
  /// Starts the arena's thread, which inherits the affinity of the caller: construct it on a thread
  /// that is not bound to the processors of the kernels.
  PlanWalker(const Plan& plan, Issue offload, Issue prefetch, bool copies_while_read = false);
  PlanWalker(const PlanWalker&) = delete;
  PlanWalker& operator=(const PlanWalker&) = delete;
  /// Stops issuing and waits for the moves in flight.
  ~PlanWalker();

  void begin_step();
  /// Blocks until the step has reached `after`. Throws: the error of a failed move.
  void wait_for(const Progress& after) { wait_for(after, never); }
  /// As wait_for(), but also returns (false) once `interrupted` holds, which is checked after every
  /// event and nudge().
  bool wait_for(const Progress& after, const std::function<bool()>& interrupted);
  /// As wait_for(), for the moves of `after` only; for work submitted after the earlier runs.
  bool wait_for_moves(const Progress& after, const std::function<bool()>& interrupted = never) {
    return wait_for({.offloads = after.offloads, .prefetches = after.prefetches}, interrupted);
  }
  /// Blocks until `prefetches` prefetches of the step have been issued: Issue has returned. Throws:
  /// the error of a failed move.
  void wait_until_issued(std::uint32_t prefetches);
  /// Notes that the next run of the plan has ended. Runs may end earlier, but are reported in
  /// order.
  void end_run();
  /// Aborts the step: waiting calls throw `error`, unless something failed before.
  void fail(std::exception_ptr error);
  /// Blocks until every run and every move has ended. Returns and throws as wait_for().
  bool end_step(const std::function<bool()>& interrupted = never);

  /// Retries moves that could not be issued, and wakes wait_for().
  void nudge();

  /// Returns when the moves of the current step began and ended.
  [[nodiscard]] Timeline moves() const;

 private:
  using Clock = std::chrono::steady_clock;

  // The moves of one direction.
  struct Queue {
    const std::vector<Move>& moves;
    Issue issue;
    std::uint32_t Progress::*ended;
    std::vector<Interval> Timeline::*intervals;
    std::uint32_t issued = 0;     // Issue has been called
    std::uint32_t accepted = 0;   // Issue has returned true
    std::uint32_t completed = 0;  // the move has ended
    std::vector<bool> has_ended;  // by move; moves that count are a prefix
    std::vector<um::Nanoseconds> ended_at;
  };

  static bool never() { return false; }

  void begin(Queue& queue);          // requires the lock
  void schedule_advance() noexcept;  // requires the lock
  void enqueue(void (PlanWalker::*task)());
  void advance();  // runs in the arena: a move that throws has failed
  void end_advance();
  bool issue_next(Queue& queue);
  [[nodiscard]] bool may_start(const Move& move) const;  // requires the lock
  void count(Queue& queue);                              // requires the lock
  void complete(Queue& queue, std::uint32_t index, std::exception_ptr error);
  [[nodiscard]] um::Nanoseconds now() const { return Clock::now() - begin_; }

  const Plan& plan_;
  const bool copies_while_read_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t step_ = 0;
  Progress progress_;
  Queue offloads_;
  Queue prefetches_;
  std::uint32_t advances_pending_ = 0;
  bool is_stopped_ = true;
  std::exception_ptr error_;
  Timeline timeline_;
  Clock::time_point begin_;

  oneapi::tbb::task_arena arena_;  // of one thread
};

}  // namespace spillway::prefetch
