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

/// Prepares the calling thread, just started, for the work of the host device: gives it a name of
/// at most 15 characters, leaves the program's signals to the program's threads, lets it sleep to
/// the microsecond, and lets it use every CPU that some thread of the process may use. (OpenMP
/// binds the thread that meets it first to one place, and threads started by that one would all
/// share the place with it.)
void prepare_worker_thread(std::string_view name) noexcept;

/// A copy engine: one thread that does jobs one after the other, in the order of their issue.
///
/// Thread safety: enqueue() and drain() may be called from any thread, enqueue() also from a job.
class Engine {
 public:
  /// `name` is the thread's, for debuggers: at most 15 characters.
  explicit Engine(const std::string& name);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// Finishes all jobs first.
  ~Engine();

  /// Requires: `job` does not throw.
  void enqueue(std::function<void()> job);

  /// Blocks until all jobs enqueued so far have ended. Allocates nothing: a caller that unwinds for
  /// want of memory can still wait before it frees what the jobs use. Requires: not called from a
  /// job of this engine.
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
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace spillway::um
