#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace spillway::um {

/// A copy engine: one thread that does jobs one after the other, in the order of their issue.
///
/// Thread safety: enqueue() may be called from any thread, also from a job.
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

  /// Blocks until all jobs enqueued so far have ended. Allocates nothing, so that whoever lacks
  /// memory can still wait for those who use what it is about to free. Requires: not called from a
  /// job.
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
