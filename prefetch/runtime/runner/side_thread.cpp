#include "prefetch/runtime/runner/side_thread.h"

#include <utility>

namespace spillway::prefetch {

SideThread::SideThread(std::function<void()> work)
    : work_{std::move(work)}, thread_{[this] { run(); }} {}

SideThread::~SideThread() {
  {
    const std::lock_guard lock{mutex_};
    is_stopped_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void SideThread::begin() {
  const std::lock_guard lock{mutex_};
  is_busy_ = true;
  changed_.notify_all();
}

void SideThread::wait() noexcept {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return !is_busy_; });
}

void SideThread::run() {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return is_stopped_ || is_busy_; });
    if (!is_busy_) return;
    lock.unlock();
    work_();
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace spillway::prefetch
