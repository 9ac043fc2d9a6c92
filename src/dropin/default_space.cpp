#include "src/dropin/default_space.h"

#include <pthread.h>

#include <exception>
#include <memory>

#include "src/dropin/live_spaces.h"
#include "um/dropin/allocations.h"
#include "um/error.h"

namespace spillway::dropin {

DefaultSpace& default_space() {
  static auto* const space = new DefaultSpace;
  return *space;
}

namespace {

// Made, and live_spaces() with it, when the library is loaded: a child of a fork in the middle of
// the first call would wait for ever for a thread that it does not have.
[[maybe_unused]] const DefaultSpace& made_at_load = default_space();

}  // namespace

// fork() locks in the reverse order of preparation: this mutex before that of live_spaces(), as
// handle() does, and after what the first space prepares for page faults. So handle() makes none
// while it has this one.
DefaultSpace::DefaultSpace() {
  static_cast<void>(live_spaces());
  const int failure =
      pthread_atfork([] { default_space().mutex_.lock(); }, [] { default_space().mutex_.unlock(); },
                     [] { default_space().forget_in_child(); });
  if (failure != 0) throw um::system_error("cannot prepare the default space for fork", failure);
}

void DefaultSpace::forget_in_child() {
  is_being_made_ = false;
  std::construct_at(&changed_);  // it may have waiters, which are the parent's
  mutex_.unlock();
}

void DefaultSpace::set(const SpaceRequest& request) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return !is_being_made_; });
  if (live_spaces().has(id_)) {
    throw um::Misuse{"the default space is in use; say what it is made of before the first use"};
  }
  request_ = request;
}

std::uint64_t DefaultSpace::handle() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return !is_being_made_; });
  if (live_spaces().has(id_)) return id_;
  const SpaceRequest request = request_ ? *request_ : read_environment();
  is_being_made_ = true;
  lock.unlock();
  std::uint64_t made = 0;
  std::exception_ptr failure;
  try {
    made = live_spaces().make(request);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  is_being_made_ = false;
  changed_.notify_all();
  if (failure != nullptr) std::rethrow_exception(failure);
  return id_ = made;
}

std::uint64_t DefaultSpace::last_handle() {
  const std::lock_guard lock{mutex_};
  return id_;
}

}  // namespace spillway::dropin
