// The functions of spillway_um.h on spaces.
#include <memory>
#include <string>

#include "src/dropin/default_space.h"
#include "src/dropin/failure.h"
#include "src/dropin/live_spaces.h"
#include "src/dropin/space_request.h"
#include "um/dropin/allocations.h"
#include "um/dropin/space.h"
#include "um/dropin/spillway_um.h"

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

/// Does `action` with the open space.
template <class Action>
spillway_um_status in_space(spillway_um_space space, const Action& action) noexcept {
  return guarded([&] {
    const auto open = live_spaces().at(space.id);  // held while the action runs
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
    made = nullptr;  // also when there is no such space
    made = live_spaces().at(space.id)->allocate(Bytes{bytes}, Bytes{alignment});
  });
}

spillway_um_status spillway_um_free(spillway_um_space space, void* address) {
  return in_space(space, [&](OpenSpace& in) {
    if (address != nullptr) in.free(address);
  });
}

// What a stream is done with is given out only when it is: so the memory is any stream's.
spillway_um_status spillway_um_allocate_async(spillway_um_space space, size_t bytes,
                                              size_t alignment, void* /*stream*/, void** address) {
  return spillway_um_allocate(space, bytes, alignment, address);
}

spillway_um_status spillway_um_free_async(spillway_um_space space, void* address, void* stream) {
  return guarded([&] {
    const auto open = live_spaces().at(space.id);
    if (address != nullptr) open->free_after(address, open->record(stream));
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
    found.id = 0;  // also when there is none
    found.id = default_space().handle();
  });
}

}  // extern "C"
