#pragma once

#include "um/bytes.h"

namespace spillway::prefetch {

/// What does one thing at a time in a virtual execution.
struct VirtualLane {
  bool is_busy = false;
  double left = 0;  ///< nanoseconds of undisturbed work

  void start(um::Nanoseconds time) {
    is_busy = true;
    left = static_cast<double>(time.count());
  }
  /// So much of the work is done; true when that ends it.
  bool pass(double work) {
    constexpr double kRounding = 1e-6;  // of a nanosecond
    if (!is_busy) return false;
    left -= work;
    if (left > kRounding) return false;
    is_busy = false;
    return true;
  }
};

}  // namespace spillway::prefetch
