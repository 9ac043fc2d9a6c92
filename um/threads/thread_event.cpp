#include "um/threads/thread_event.h"

namespace spillway::um {

void ThreadEvent::fire() {
  const std::lock_guard lock{mutex_};
  has_fired_ = true;
  fired_.notify_all();
}

bool ThreadEvent::has_fired() const {
  const std::lock_guard lock{mutex_};
  return has_fired_;
}

void ThreadEvent::wait() const {
  std::unique_lock lock{mutex_};
  fired_.wait(lock, [this] { return has_fired_; });
}

}  // namespace spillway::um
