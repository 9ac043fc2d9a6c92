#include "prefetch/runtime/runner/far_lane.h"

#include <cstddef>

namespace spillway::prefetch {

FarLane::FarLane(const Plan& plan, StepMemory& memory)
    : plan_{plan}, memory_{memory}, intervals_(plan.far_runs.size()) {
  if (!plan.far_runs.empty()) thread_.emplace([this] { run_all(); });
}

void FarLane::begin_step(Clock::time_point begin, const Update& update) {
  if (!thread_) return;
  begin_ = begin;
  update_ = &update;
  thread_->begin();
}

void FarLane::end_step() {
  abandon();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void FarLane::abandon() noexcept {
  if (thread_) thread_->wait();
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
