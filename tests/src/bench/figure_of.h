#pragma once

#include "src/bench/figure.h"

namespace spillway::test {

/// As of five runs that all took `seconds`.
[[nodiscard]] inline Figure figure_of(double seconds, bool settled = true) {
  return {.median = Seconds{seconds},
          .least = Seconds{seconds},
          .most = Seconds{seconds},
          .deviation = 0,
          .runs = 5,
          .settled = settled};
}

}  // namespace spillway::test
