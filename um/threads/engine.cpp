#include "um/threads/engine.h"

#include <utility>

#include "um/threads/worker_thread.h"

namespace spillway::um {

Engine::Engine(const std::string& name)
    : thread_{[this, name] {
        prepare_worker_thread(name);
        work();
      }} {}

Engine::~Engine() {
  {
    const std::lock_guard lock{mutex_};
    is_closed_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Engine::enqueue(std::function<void()> job) {
  {
    const std::lock_guard lock{mutex_};
    jobs_.push_back(std::move(job));
    ++enqueued_count_;
  }
  changed_.notify_one();
}

void Engine::drain() noexcept {
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [this, count = enqueued_count_] { return ended_count_ >= count; });
}

void Engine::work() {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return is_closed_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    {
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
    ++ended_count_;
    ended_.notify_all();
  }
}

}  // namespace spillway::um
