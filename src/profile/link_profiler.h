#pragma once

#include <algorithm>
#include <stop_token>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/plan/memory_mode.h"
#include "src/profile/loaded_link.h"
#include "src/step/step.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/options.h"
#include "um/stream.h"

namespace spillway {

/// A link to measure, and what may be used for that.
struct LinkSubject {
  um::Device& device;
  MemoryMode mode;             ///< managed: moves of unified memory; else explicit copies
  um::ManagedOptions options;  ///< page, far memory, link, paging; sizes are chosen here
  um::Bytes limit;             ///< of near memory
  bool with_far_updates = true;
};

/// Measures bandwidth each way while the stream runs the longest task of `step`, and how much that
/// task slows down; likewise updates on the far side (measure_far_update()); and, without it, what
/// a move takes beside its bytes and whether both directions move at once. `profile` says which
/// task is the longest. Throws: Interrupted when `stop` is requested.
[[nodiscard]] prefetch::LinkProfile measure_link(const LinkSubject& subject, const Step& step,
                                                 const Backend& backend,
                                                 const prefetch::Profile& profile,
                                                 um::Stream& stream, const std::stop_token& stop);

/// What moves of one direction, one after the other, moved in how much time.
struct MovedBytes {
  um::Bytes bytes;
  um::Nanoseconds time{0};
  int moves = 0;

  void add(um::Bytes size, um::Nanoseconds taken) {
    bytes += size;
    time += taken;
    ++moves;
  }
  /// Without the latency of each move, which counts as half of the time at most. Requires: time.
  [[nodiscard]] um::Bandwidth bandwidth(um::Nanoseconds latency) const {
    const um::Nanoseconds moving = time - std::min(moves * latency, time / 2);
    return um::Bandwidth{static_cast<double>(bytes.count()) / um::seconds(moving)};
  }
};

/// How long moves of one direction take, a small and a large one.
struct MoveTimes {
  um::Bytes small;
  um::Bytes large;
  um::Nanoseconds of_small = um::Nanoseconds::max();
  um::Nanoseconds of_large = um::Nanoseconds::max();

  /// What a move takes beside its bytes, whose rate is the large move's. Not negative.
  [[nodiscard]] um::Nanoseconds latency() const;
};

/// How long moves of as many bytes take: one way alone, the other alone, both at once.
struct ExchangeTimes {
  um::Nanoseconds away = um::Nanoseconds::max();
  um::Nanoseconds back = um::Nanoseconds::max();
  um::Nanoseconds both = um::Nanoseconds::max();

  /// True when both at once are closer to the longer one alone than to one after the other. Also
  /// true where nothing was measured.
  [[nodiscard]] bool is_duplex() const;
};

/// What nothing else disturbs, the shortest time of a few each.
struct IdleLinkTimes {
  MoveTimes away;
  MoveTimes back;
  ExchangeTimes exchange;  ///< nothing where the link has a single page
};

/// Times moves of `page` and of all that `link` has, and exchanges halves of it. All of it is near
/// before and afterwards. Throws: um::Error when a move fails; Interrupted when `stop` is
/// requested.
[[nodiscard]] IdleLinkTimes measure_idle_link(LinkUnderTest& link, um::Bytes page,
                                              const std::stop_token& stop);

}  // namespace spillway
