#include "um/threads/thread_stream.h"

#include <algorithm>
#include <utility>

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

void ThreadStream::enqueue(std::function<void()> work) {
  engine_.enqueue([this, work = std::move(work)] { do_unless_failed(work); });
}

void ThreadStream::do_unless_failed(const std::function<void()>& work) {
  {
    const std::lock_guard lock{mutex_};
    if (failure_) return;
  }
  do_or_fail(work);
}

template <class Work>
void ThreadStream::do_or_fail(const Work& work) noexcept {
  try {
    work();
  } catch (...) {
    const std::lock_guard lock{mutex_};
    if (!failure_) failure_ = std::current_exception();
  }
}

std::shared_ptr<const Event> ThreadStream::record() {
  auto event = std::make_shared<ThreadEvent>();
  if (engine_.is_current()) {
    event->fire();
    return event;
  }
  engine_.enqueue([event] { event->fire(); });
  return event;
}

void ThreadStream::wait(std::shared_ptr<const Event> event) {
  engine_.enqueue([event = std::move(event)] { event->wait(); });
}

void ThreadStream::synchronize() {
  engine_.drain();
  std::exception_ptr failure;
  {
    const std::lock_guard lock{mutex_};
    failure = std::exchange(failure_, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

void ThreadStream::notify(Notice then) {
  if (engine_.is_current()) {
    then(std::chrono::steady_clock::now());
  } else {
    engine_.enqueue([this, then = std::move(then)] {
      do_or_fail([&] { then(std::chrono::steady_clock::now()); });
    });
  }
}

void ThreadStream::read(std::span<const std::byte> near, std::span<std::byte> into) {
  std::ranges::copy(near, into.begin());
}

void ThreadStream::write(std::span<const std::byte> from, std::span<std::byte> near) {
  std::ranges::copy(from, near.begin());
}

}  // namespace spillway::um
