#pragma once

#include <stop_token>

#include "src/profile/loaded_link.h"
#include "um/bytes.h"

namespace spillway {

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
