#include "prefetch/runtime/far_lane.h"

#include <cstddef>
#include <utility>

namespace spillway::prefetch {

FarLane::FarLane(const Plan& plan, StepMemory& memory)
    : plan_{plan}, memory_{memory}, intervals_(plan.far_runs.size()) {
  if (!plan.far_runs.empty()) thread_ = std::thread{[this] { work(); }};
}

FarLane::~FarLane() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock{mutex_};
    is_stopped_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void FarLane::begin_step(Clock::time_point begin, const Update& update) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock{mutex_};
  begin_ = begin;
  update_ = &update;
  changed_.notify_all();
}

void FarLane::end_step() {
  abandon();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void FarLane::abandon() noexcept {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return update_ == nullptr; });
}

void FarLane::work() {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return is_stopped_ || update_ != nullptr; });
    if (update_ == nullptr) return;
    lock.unlock();
    run_all();
    lock.lock();
    update_ = nullptr;
    changed_.notify_all();
  }
}

void FarLane::run_all() {
  const auto now = [this] { return um::Nanoseconds{Clock::now() - begin_}; };
  try {
    for (std::size_t i = 0; i < plan_.far_runs.size(); ++i) {
      memory_.wait_for(plan_.far_runs[i].after);
      intervals_[i].begin = now();
      (*update_)(plan_.far_runs[i].update);
      intervals_[i].end = now();
    }
  } catch (...) {
    failure_ = std::current_exception();
    memory_.fail(failure_);
  }
}

}  // namespace spillway::prefetch
