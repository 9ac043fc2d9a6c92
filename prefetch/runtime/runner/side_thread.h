#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

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

}  // namespace spillway::prefetch
