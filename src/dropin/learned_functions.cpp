// The functions of spillway_um.h that tell what learned prefetch does.
#include <algorithm>
#include <cstring>
#include <string>

#include "prefetch/learned/replayer.h"
#include "src/dropin/failure.h"
#include "src/dropin/live_spaces.h"
#include "um/dropin/allocations.h"
#include "um/dropin/spillway_um.h"

namespace {

using spillway::dropin::guarded;
using spillway::dropin::live_spaces;
using spillway::um::Misuse;

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

spillway_um_status spillway_um_get_learned_counters(spillway_um_space space,
                                                    spillway_um_learned_counters* counters) {
  return guarded([&] {
    const auto open = live_spaces().at(space.id);
    if (counters == nullptr) throw Misuse{"counters is NULL; pass where to put it"};
    if (counters->version != SPILLWAY_UM_LEARNED_COUNTERS_VERSION) {
      throw Misuse{"learned counters of version " + std::to_string(counters->version) +
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
    if (text == nullptr || bytes == 0) throw Misuse{"no room for text; pass where to put it"};
    const auto* const learned = open->learned();
    const std::string status =
        learned != nullptr ? learned->status() : spillway::prefetch::Replayer{}.description();
    const std::size_t size = std::min(status.size(), bytes - 1);
    std::memcpy(text, status.data(), size);
    text[size] = '\0';
  });
}

}  // extern "C"
