#pragma once

#include "src/bench/timing_summary.h"

namespace spillway::test {

/// As of five runs that all took `seconds`.
[[nodiscard]] inline TimingSummary timing_of(double seconds, bool settled = true) {
  return {.median = Seconds{seconds},
          .min = Seconds{seconds},
          .max = Seconds{seconds},
          .deviation = 0,
          .runs = 5,
          .settled = settled};
}

}  // namespace spillway::test
