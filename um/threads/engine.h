#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace spillway::um {

/// Prepares the calling, just started thread for work of the host device. Gives it a name of at
/// most 15 characters and microsecond timers, and blocks the program's signals in it. Lets it use
/// every CPU that any thread of the process may use. (OpenMP binds the first thread it meets to one
/// place, which threads started by that thread would inherit.)
void prepare_worker_thread(std::string_view name) noexcept;

/// A copy engine: one thread that runs jobs one at a time, in the order of their issue.
///
/// Thread safety: any thread may call enqueue() and drain(); a job may call enqueue(), too.
class Engine {
 public:
  /// `name` names the thread for debuggers: at most 15 characters.
  explicit Engine(const std::string& name);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// Finishes all jobs first.
  ~Engine();

  /// Requires: `job` does not throw.
  void enqueue(std::function<void()> job);

  /// Blocks until all jobs enqueued so far have ended. Allocates nothing, so that a caller that
  /// unwinds for lack of memory (std::bad_alloc, too) can wait before it frees what the jobs use.
  /// Requires: not called from a job of this engine.
  void drain() noexcept;

  /// True when called from a job.
  [[nodiscard]] bool is_current() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable ended_;
  std::deque<std::function<void()>> jobs_;
  std::uint64_t enqueued_count_ = 0;
  std::uint64_t ended_count_ = 0;
  bool is_closed_ = false;
  std::thread thread_;  // last: starts when all other members exist
};

}  // namespace spillway::um
