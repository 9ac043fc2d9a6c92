// The default space, and its C functions for PyTorch and CuPy.
#include "src/dropin/default_space.h"

#include <pthread.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "src/dropin/failure.h"
#include "src/dropin/live_spaces.h"
#include "um/dropin/allocations.h"
#include "um/dropin/spillway_um.h"
#include "um/error.h"

namespace spillway::dropin {

DefaultSpace& default_space() {
  static auto* const space = new DefaultSpace;
  return *space;
}

namespace {

// Makes the default space's object and live_spaces() when the library is loaded. A child of a fork
// during the first call would otherwise wait for ever for a thread that it lacks.
[[maybe_unused]] const DefaultSpace& made_at_load = default_space();

}  // namespace

// fork() locks in the reverse order of preparation: this mutex before that of live_spaces(), like
// handle(), and after that of the page-fault handlers, which the first space prepares. handle()
// therefore makes no space while it holds this mutex.
DefaultSpace::DefaultSpace() {
  static_cast<void>(live_spaces());
  const int failure =
      pthread_atfork([] { default_space().mutex_.lock(); }, [] { default_space().mutex_.unlock(); },
                     [] { default_space().forget_in_child(); });
  if (failure != 0) throw um::system_error("cannot prepare the default space for fork", failure);
}

void DefaultSpace::forget_in_child() {
  is_being_made_ = false;
  std::construct_at(&changed_);  // its waiters exist only in the parent
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

namespace {

using spillway::dropin::default_space;
using spillway::dropin::guarded;
using spillway::dropin::last_failure;
using spillway::dropin::live_spaces;
using spillway::dropin::OpenSpace;
using spillway::um::Bytes;

constexpr Bytes kAlignment{512};  // frameworks assume this of CUDA's allocators

/// Returns the space of `handle`. On the host every device is the same.
std::shared_ptr<OpenSpace> space_on(int device, std::uint64_t handle) {
  auto open = live_spaces().at(handle);
  if (open->ordinal() >= 0 && open->ordinal() != device) {
    throw spillway::um::Misuse{"the default space is on cuda:" + std::to_string(open->ordinal()) +
                               ", not on device " + std::to_string(device) +
                               "; say which with SPILLWAY_UM_DEVICE=cuda:N"};
  }
  return open;
}

/// Writes a failure to standard error, because these functions return no status.
void report(spillway_um_status status, const char* function) {
  if (status != SPILLWAY_UM_OK) std::fprintf(stderr, "%s: %s\n", function, last_failure());
}

void* allocate(std::size_t bytes, int device, void* stream, const char* function) {
  if (bytes == 0) return nullptr;
  void* address = nullptr;
  report(guarded([&] {
           const auto open = space_on(device, default_space().handle());
           address = open->allocate_for(stream, Bytes{bytes}, kAlignment);
         }),
         function);
  return address;
}

void free_in_order(void* address, int device, void* stream, const char* function) {
  if (address == nullptr) return;
  report(guarded([&] {
           // Does not make a space for a free, which could not own the memory, as in a child of
           // fork().
           const auto open = space_on(device, default_space().last_handle());
           open->free_after(address, open->ordinal() < 0 ? nullptr : stream);
         }),
         function);
}

}  // namespace

extern "C" {

void* spillway_torch_malloc(ptrdiff_t bytes, int device, void* stream) {
  if (bytes <= 0) return nullptr;
  return allocate(static_cast<std::size_t>(bytes), device, stream, "spillway_torch_malloc");
}

void spillway_torch_free(void* address, ptrdiff_t /*bytes*/, int device, void* stream) {
  free_in_order(address, device, stream, "spillway_torch_free");
}

void* spillway_cupy_malloc(void* /*param*/, size_t bytes, int device) {
  return allocate(bytes, device, nullptr, "spillway_cupy_malloc");
}

void spillway_cupy_free(void* /*param*/, void* address, int device) {
  free_in_order(address, device, nullptr, "spillway_cupy_free");
}

}  // extern "C"
