#include "prefetch/runtime/runner/exchange_thread.h"

#include <cstddef>
#include <utility>

#include "um/error.h"

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

ExchangeThread::ExchangeThread(const Plan& plan) : plan_{plan}, intervals_(plan.exchanges.size()) {
  if (!plan.exchanges.empty()) thread_.emplace([this] { run_all(); });
}

void ExchangeThread::begin_step(Clock::time_point begin, const Exchange& exchange) {
  if (!thread_) return;
  um::expects(exchange != nullptr, "who exchanges gradients");
  begin_ = begin;
  exchange_ = &exchange;
  {
    const std::lock_guard lock{mutex_};
    runs_ = 0;
    exchanges_ = 0;
  }
  thread_->begin();
}

void ExchangeThread::end_run(std::uint32_t runs) {
  if (!thread_) return;
  const std::lock_guard lock{mutex_};
  runs_ = runs;
  changed_.notify_all();
}

void ExchangeThread::wait_for(std::uint32_t exchanges) {
  if (exchanges == 0) return;
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return failure_ != nullptr || exchanges_ >= exchanges; });
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void ExchangeThread::end_step() {
  if (!thread_) return;
  thread_->wait();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void ExchangeThread::abandon() noexcept {
  if (!thread_) return;
  {
    const std::lock_guard lock{mutex_};
    is_abandoned_ = true;
    changed_.notify_all();
  }
  thread_->wait();
}

// Returns false when the step was abandoned meanwhile.
bool ExchangeThread::wait_for_runs(std::uint32_t runs) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return is_abandoned_ || runs_ >= runs; });
  return !is_abandoned_;
}

void ExchangeThread::note_end() {
  const std::lock_guard lock{mutex_};
  ++exchanges_;
  changed_.notify_all();
}

void ExchangeThread::run_all() noexcept {
  const auto now = [this] { return um::Nanoseconds{Clock::now() - begin_}; };
  try {
    for (std::size_t i = 0; i < plan_.exchanges.size(); ++i) {
      if (!wait_for_runs(plan_.exchanges[i].after_runs)) return;
      intervals_[i].begin = now();
      (*exchange_)(plan_.exchanges[i].exchange);
      intervals_[i].end = now();
      note_end();
    }
  } catch (...) {
    const std::lock_guard lock{mutex_};
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

}  // namespace spillway::prefetch
