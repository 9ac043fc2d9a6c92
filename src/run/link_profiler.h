#pragma once

#include <algorithm>
#include <stop_token>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/program/step.h"
#include "src/run/loaded_link.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/options.h"
#include "um/stream.h"

namespace spillway {

/// A link to measure, and the memory that the measurement may use.
struct LinkSubject {
  um::Device& device;
  MemoryMode mode;             ///< managed: moves of unified memory; otherwise explicit copies
  um::ManagedOptions options;  ///< page, far memory, link, paging; sizes are chosen here
  um::Bytes limit;             ///< of near memory
  bool with_far_updates = true;
};

/// Measures the bandwidth each way while the stream runs the longest task of `step`, and how much
/// that slows the task down. Measures far updates under the same load (measure_far_update()). On an
/// idle link, measures the latency of a move and whether both directions move at once. `profile`
/// says which task is the longest. Throws: Interrupted when `stop` is requested.
[[nodiscard]] prefetch::LinkProfile measure_link(const LinkSubject& subject, const Step& step,
                                                 const Backend& backend,
                                                 const prefetch::Profile& profile,
                                                 um::Stream& stream, const std::stop_token& stop);

/// Total bytes and time of consecutive moves in one direction.
struct MovedBytes {
  um::Bytes bytes;
  um::Nanoseconds time{0};
  int moves = 0;

  void add(um::Bytes size, um::Nanoseconds taken) {
    bytes += size;
    time += taken;
    ++moves;
  }
  /// Returns the rate without the latency of each move, which counts as half of the time at most.
  /// Requires: time > 0.
  [[nodiscard]] um::Bandwidth bandwidth(um::Nanoseconds latency) const {
    const um::Nanoseconds moving = time - std::min(moves * latency, time / 2);
    return um::Bandwidth{static_cast<double>(bytes.count()) / um::seconds(moving)};
  }
};

/// Times of a small and a large move in one direction.
struct MoveTimes {
  um::Bytes small;
  um::Bytes large;
  um::Nanoseconds of_small = um::Nanoseconds::max();
  um::Nanoseconds of_large = um::Nanoseconds::max();

  /// Returns the fixed time of a move, at the large move's rate for its bytes. Not negative.
  [[nodiscard]] um::Nanoseconds latency() const;
};

/// Times of moves of equal size: one way alone, the other way alone, both at once.
struct ExchangeTimes {
  um::Nanoseconds away = um::Nanoseconds::max();
  um::Nanoseconds back = um::Nanoseconds::max();
  um::Nanoseconds both = um::Nanoseconds::max();

  /// True when the time of both is closer to the longer one alone than to their sum. Also true if
  /// nothing was measured.
  [[nodiscard]] bool is_duplex() const;
};

/// Times of an otherwise idle link, each the shortest of a few.
struct IdleLinkTimes {
  MoveTimes away;
  MoveTimes back;
  ExchangeTimes exchange;  ///< not measured if the link has a single page
};

/// Times moves of `page` bytes and of the whole link, and exchanges its halves. All of it is near
/// before and afterwards. Throws: um::Error when a move fails; Interrupted when `stop` is
/// requested.
[[nodiscard]] IdleLinkTimes measure_idle_link(LinkUnderTest& link, um::Bytes page,
                                              const std::stop_token& stop);

}  // namespace spillway
