#pragma once

#include <algorithm>

#include "um/bytes.h"

namespace spillway {

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

}  // namespace spillway
