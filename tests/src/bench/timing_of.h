#pragma once

#include "src/bench/repetition.h"

namespace spillway::test {

/// As of five runs that took about `seconds`.
[[nodiscard]] inline TimingSummary timing_of(double seconds, bool settled = true,
                                             double deviation = 0) {
  return {.median = Seconds{seconds},
          .min = Seconds{seconds},
          .max = Seconds{seconds},
          .deviation = deviation,
          .runs = 5,
          .settled = settled};
}

}  // namespace spillway::test
