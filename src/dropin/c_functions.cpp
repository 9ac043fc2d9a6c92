// The C functions of spillway_um.h on spaces, far memory and learned prefetch.
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/learned/replayer.h"
#include "src/dropin/default_space.h"
#include "src/dropin/failure.h"
#include "src/dropin/live_spaces.h"
#include "src/dropin/space_request.h"
#include "um/dropin/allocations.h"
#include "um/dropin/space.h"
#include "um/dropin/spillway_um.h"
#include "um/error.h"
#include "um/host/far/far_store.h"

namespace {

namespace um = spillway::um;
using spillway::dropin::default_space;
using spillway::dropin::guarded;
using spillway::dropin::live_spaces;
using spillway::dropin::OpenSpace;
using um::Bytes;

template <class T>
T& given(T* pointer, const char* name) {
  if (pointer == nullptr) throw um::Misuse{std::string{name} + " is NULL; pass where to put it"};
  return *pointer;
}

// Calls `action` with the open space.
template <class Action>
spillway_um_status in_space(spillway_um_space space, const Action& action) noexcept {
  return guarded([&] {
    const auto open = live_spaces().at(space.id);  // keeps the space alive during the action
    action(*open);
  });
}

um::Advice advice_of(int advice) {
  switch (advice) {
    case SPILLWAY_UM_ADVICE_NONE:
      return um::Advice::kNone;
    case SPILLWAY_UM_ADVICE_PREFER_NEAR:
      return um::Advice::kPreferNear;
    case SPILLWAY_UM_ADVICE_PREFER_FAR:
      return um::Advice::kPreferFar;
    case SPILLWAY_UM_ADVICE_READ_MOSTLY:
      return um::Advice::kReadMostly;
  }
  throw um::Misuse{"there is no advice " + std::to_string(advice) +
                   "; use one of spillway_um_advice"};
}

um::Access access_of(int access) {
  switch (access) {
    case SPILLWAY_UM_READ:
      return um::Access::kRead;
    case SPILLWAY_UM_WRITE:
    case SPILLWAY_UM_READ_WRITE:
      return um::Access::kReadWrite;
  }
  throw um::Misuse{"there is no access " + std::to_string(access) +
                   "; use one of spillway_um_access"};
}

void fill(spillway_um_counters& to, const um::SpaceCounters& from) {
  to = {.version = SPILLWAY_UM_COUNTERS_VERSION,
        .reserved = 0,
        .allocations = from.allocations,
        .frees = from.frees,
        .allocated_bytes = from.allocated.count(),
        .near_bytes = from.near.count(),
        .near_peak_bytes = from.near_peak.count(),
        .faults = from.moves.faults,
        .fault_nanoseconds = static_cast<std::uint64_t>(from.moves.fault_time.count()),
        .evictions = from.moves.evictions,
        .bytes_prefetched = from.moves.bytes_prefetched.count(),
        .bytes_offloaded = from.moves.bytes_offloaded.count(),
        .discarded_pages = from.moves.discarded_pages,
        .refused_hints = from.moves.refused_hints,
        .touches = from.touches};
}

// The far memory of the process by handle. Handles are never reused. A child of a fork has none,
// since parent and child would write to one file.
//
// Thread safety: any thread may call every function.
class LiveFar {
 public:
  // Throws: um::Error.
  [[nodiscard]] std::uint64_t make(const um::FarOptions& options, um::Bytes size);
  // Returns a shared pointer, which keeps destroyed far memory until the last running call has
  // returned. Throws: um::Misuse.
  [[nodiscard]] std::shared_ptr<um::FarStore> at(std::uint64_t id);
  // Throws: um::Misuse.
  void end(std::uint64_t id);

 private:
  using Stores = std::map<std::uint64_t, std::shared_ptr<um::FarStore>>;

  friend LiveFar& live_far();
  LiveFar();

  // Requires: the caller holds the mutex. Throws: um::Misuse.
  [[nodiscard]] Stores::iterator found(std::uint64_t id);

  std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  Stores stores_;
  std::vector<Stores> of_parents_;  // never accessed
};

// Returns the instance of the process, which is never destroyed, like live_spaces().
LiveFar& live_far() {
  static auto* const stores = new LiveFar;
  return *stores;
}

LiveFar::LiveFar() {
  const int failure =
      pthread_atfork([] { live_far().mutex_.lock(); }, [] { live_far().mutex_.unlock(); },
                     [] {
                       LiveFar& all = live_far();
                       all.of_parents_.push_back(std::exchange(all.stores_, {}));
                       all.mutex_.unlock();
                     });
  if (failure != 0) throw um::system_error("cannot prepare far memory for fork", failure);
}

std::uint64_t LiveFar::make(const um::FarOptions& options, um::Bytes size) {
  std::shared_ptr<um::FarStore> made = um::make_far_store(options, size);
  const std::lock_guard lock{mutex_};
  stores_.emplace(++last_id_, std::move(made));
  return last_id_;
}

std::shared_ptr<um::FarStore> LiveFar::at(std::uint64_t id) {
  const std::lock_guard lock{mutex_};
  return found(id)->second;
}

LiveFar::Stores::iterator LiveFar::found(std::uint64_t id) {
  const auto found = stores_.find(id);
  if (found != stores_.end()) return found;
  throw um::Misuse{id > 0 && id <= last_id_
                       ? "far memory " + std::to_string(id) +
                             " is not alive here: it was destroyed, or made before a fork"
                       : "no far memory was ever made with the handle " + std::to_string(id)};
}

void LiveFar::end(std::uint64_t id) {
  Stores::node_type ending;  // destroyed after the mutex is released
  const std::lock_guard lock{mutex_};
  ending = stores_.extract(found(id));
}

constexpr std::uint64_t kFarAlignment = SPILLWAY_UM_FAR_ALIGNMENT;

void expect_aligned(std::uint64_t number, const char* what) {
  if (number % kFarAlignment == 0) return;
  throw um::Misuse{std::string{what} + " " + std::to_string(number) + " is no multiple of " +
                   std::to_string(kFarAlignment) + "; far memory moves in such blocks"};
}

// Throws: um::Misuse unless the copy is valid for `far`.
void expect_copy(const um::FarStore& far, std::uint64_t offset, const void* address,
                 std::size_t bytes) {
  if (address == nullptr) throw um::Misuse{"the address is NULL; pass ordinary memory"};
  expect_aligned(offset, "offset");
  expect_aligned(reinterpret_cast<std::uintptr_t>(address), "address");
  expect_aligned(bytes, "size");
  const std::uint64_t size = far.size().count();
  if (offset > size || bytes > size - offset) {
    throw um::Misuse{"bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                     " are not all in far memory of " + std::to_string(size) + " bytes"};
  }
}

void fill(spillway_um_learned_counters& to, const spillway::prefetch::ReplayerCounters& from) {
  to = {.version = SPILLWAY_UM_LEARNED_COUNTERS_VERSION,
        .reserved = 0,
        .iterations = from.iterations,
        .recorded = from.recorded,
        .followed = from.followed,
        .abandoned = from.abandoned,
        .idle = from.idle,
        .lessons = from.replay_plans,
        .touches = from.touches,
        .hits = from.hits,
        .misses = from.misses,
        .unguided = from.unguided,
        .late = from.late,
        .prefetches = from.prefetches,
        .offloads = from.offloads};
}

}  // namespace

extern "C" {

const char* spillway_um_last_error() { return spillway::dropin::last_failure(); }

const char* spillway_um_version() { return SPILLWAY_VERSION; }

void spillway_um_options_init(spillway_um_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->version = SPILLWAY_UM_OPTIONS_VERSION;
}

spillway_um_status spillway_um_create(const spillway_um_options* options,
                                      spillway_um_space* space) {
  return guarded([&] {
    spillway_um_space& made = given(space, "space");
    made.id = 0;
    made.id = live_spaces().make(spillway::dropin::read_options(options));
  });
}

spillway_um_status spillway_um_destroy(spillway_um_space space) {
  return guarded([&] { live_spaces().end(space.id); });
}

spillway_um_status spillway_um_device(spillway_um_space space, int32_t* ordinal) {
  return guarded([&] { given(ordinal, "ordinal") = live_spaces().at(space.id)->ordinal(); });
}

spillway_um_status spillway_um_allocate(spillway_um_space space, size_t bytes, size_t alignment,
                                        void** address) {
  return guarded([&] {
    void*& made = given(address, "address");
    made = nullptr;  // also if the space does not exist
    made = live_spaces().at(space.id)->allocate(Bytes{bytes}, Bytes{alignment});
  });
}

spillway_um_status spillway_um_free(spillway_um_space space, void* address) {
  return in_space(space, [&](OpenSpace& in) {
    if (address != nullptr) in.free(address);
  });
}

// Any stream may use the memory, since memory freed on a stream is reused only after that stream.
spillway_um_status spillway_um_allocate_async(spillway_um_space space, size_t bytes,
                                              size_t alignment, void* stream, void** address) {
  return guarded([&] {
    void*& made = given(address, "address");
    made = nullptr;  // also if the space does not exist
    made = live_spaces().at(space.id)->allocate_for(stream, Bytes{bytes}, Bytes{alignment});
  });
}

spillway_um_status spillway_um_free_async(spillway_um_space space, void* address, void* stream) {
  return in_space(space, [&](OpenSpace& in) {
    if (address != nullptr) in.free_after(address, stream);
  });
}

spillway_um_status spillway_um_prefetch(spillway_um_space space, const void* address,
                                        size_t bytes) {
  return in_space(space, [&](OpenSpace& in) {
    in.space().prefetch(address, Bytes{bytes}, um::MemoryTier::kNear);
  });
}

spillway_um_status spillway_um_offload(spillway_um_space space, const void* address, size_t bytes) {
  return in_space(space, [&](OpenSpace& in) {
    in.space().prefetch(address, Bytes{bytes}, um::MemoryTier::kFar);
  });
}

spillway_um_status spillway_um_discard(spillway_um_space space, void* address, size_t bytes) {
  return in_space(space, [&](OpenSpace& in) { in.space().discard(address, Bytes{bytes}); });
}

spillway_um_status spillway_um_advise(spillway_um_space space, const void* address, size_t bytes,
                                      int advice) {
  return in_space(
      space, [&](OpenSpace& in) { in.space().advise(address, Bytes{bytes}, advice_of(advice)); });
}

spillway_um_status spillway_um_touch(spillway_um_space space, const void* address, size_t bytes,
                                     int access) {
  return in_space(space,
                  [&](OpenSpace& in) { in.touch(address, Bytes{bytes}, access_of(access)); });
}

spillway_um_status spillway_um_synchronize(spillway_um_space space) {
  return in_space(space, [](OpenSpace& in) { in.synchronize(); });
}

spillway_um_status spillway_um_mark_iteration(spillway_um_space space) {
  return in_space(space, [](OpenSpace& in) { in.mark_iteration(); });
}

spillway_um_status spillway_um_prepare_thread(spillway_um_space space) {
  return guarded([&] { live_spaces().at(space.id)->prepare_thread(); });
}

spillway_um_status spillway_um_near_bytes(spillway_um_space space, const void* address,
                                          size_t bytes, uint64_t* near_bytes) {
  return in_space(space, [&](OpenSpace& in) {
    given(near_bytes, "near_bytes") = in.space().near_bytes(address, Bytes{bytes}).count();
  });
}

spillway_um_status spillway_um_get_counters(spillway_um_space space,
                                            spillway_um_counters* counters) {
  return in_space(space, [&](OpenSpace& in) {
    spillway_um_counters& to = given(counters, "counters");
    if (to.version != SPILLWAY_UM_COUNTERS_VERSION) {
      throw um::Misuse{"counters of version " + std::to_string(to.version) +
                       "; set version to SPILLWAY_UM_COUNTERS_VERSION, which is " +
                       std::to_string(SPILLWAY_UM_COUNTERS_VERSION)};
    }
    fill(to, in.space().counters());
  });
}

spillway_um_status spillway_um_set_default(const spillway_um_options* options) {
  return guarded([&] { default_space().set(spillway::dropin::read_options(options)); });
}

spillway_um_status spillway_um_default(spillway_um_space* space) {
  return guarded([&] {
    spillway_um_space& found = given(space, "space");
    found.id = 0;  // also without a default space
    found.id = default_space().handle();
  });
}

spillway_um_status spillway_um_far_create(const char* folder, uint64_t bytes,
                                          spillway_um_far* far) {
  return guarded([&] {
    if (far == nullptr) throw um::Misuse{"far is NULL; pass where to put it"};
    far->id = 0;  // also if no far memory can be made
    if (bytes == 0) throw um::Misuse{"far memory of no bytes; ask for some"};
    expect_aligned(bytes, "size");
    um::FarOptions options;
    if (folder != nullptr) options.file = folder;
    far->id = live_far().make(options, um::Bytes{bytes});
  });
}

spillway_um_status spillway_um_far_destroy(spillway_um_far far) {
  return guarded([&] { live_far().end(far.id); });
}

spillway_um_status spillway_um_far_write(spillway_um_far far, uint64_t offset, const void* from,
                                         size_t bytes) {
  return guarded([&] {
    const auto store = live_far().at(far.id);
    expect_copy(*store, offset, from, bytes);
    store->write(um::Bytes{offset}, {static_cast<const std::byte*>(from), bytes});
  });
}

spillway_um_status spillway_um_far_read(spillway_um_far far, uint64_t offset, void* to,
                                        size_t bytes) {
  return guarded([&] {
    const auto store = live_far().at(far.id);
    expect_copy(*store, offset, to, bytes);
    store->read(um::Bytes{offset}, {static_cast<std::byte*>(to), bytes});
  });
}

spillway_um_status spillway_um_get_learned_counters(spillway_um_space space,
                                                    spillway_um_learned_counters* counters) {
  return guarded([&] {
    const auto open = live_spaces().at(space.id);
    if (counters == nullptr) throw um::Misuse{"counters is NULL; pass where to put it"};
    if (counters->version != SPILLWAY_UM_LEARNED_COUNTERS_VERSION) {
      throw um::Misuse{"learned counters of version " + std::to_string(counters->version) +
                       "; set version to SPILLWAY_UM_LEARNED_COUNTERS_VERSION, which is " +
                       std::to_string(SPILLWAY_UM_LEARNED_COUNTERS_VERSION)};
    }
    const auto* const learned = open->learned();
    fill(*counters,
         learned != nullptr ? learned->counters() : spillway::prefetch::ReplayerCounters{});
  });
}

spillway_um_status spillway_um_learned_status(spillway_um_space space, char* text, size_t bytes) {
  return guarded([&] {
    const auto open = live_spaces().at(space.id);
    if (text == nullptr || bytes == 0) throw um::Misuse{"no room for text; pass where to put it"};
    const auto* const learned = open->learned();
    const std::string status =
        learned != nullptr ? learned->status() : spillway::prefetch::Replayer{}.description();
    const std::size_t size = std::min(status.size(), bytes - 1);
    std::memcpy(text, status.data(), size);
    text[size] = '\0';
  });
}

}  // extern "C"
