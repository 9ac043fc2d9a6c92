#include "tools/gpu/moves.h"

namespace spillway::gpu {

um::Completion Moves::completion() {
  const std::lock_guard lock{mutex_};
  ++under_way_;
  return [this](const std::exception_ptr& failure) {
    const std::lock_guard ended{mutex_};
    if (failure != nullptr) failure_ = failure;
    --under_way_;
    end_ = Clock::now();
    changed_.notify_all();
  };
}

void Moves::wait() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return under_way_ == 0; });
}

Moves::Clock::time_point Moves::end() {
  wait();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return end_;
}

}  // namespace spillway::gpu
