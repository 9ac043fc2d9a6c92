#include "src/sweep/point.h"

namespace spillway {

std::optional<double> slowdown(const Point& point) {
  if (!point.outcome || !point.outcome->makespan) return std::nullopt;
  return um::seconds(*point.outcome->makespan) / um::seconds(point.facts.fastest);
}

}  // namespace spillway
