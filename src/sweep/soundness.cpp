#include "src/sweep/soundness.h"

namespace spillway {

um::Error unsound_plan(std::string_view planner, const std::string& subject, um::Bytes budget,
                       const std::string& violation) {
  return um::Error{"the plan of planner " + std::string{planner} + " for " + subject + " within " +
                   std::to_string(budget.count()) + " bytes does not verify: " + violation};
}

void expect_sound(std::span<const Point> points) {
  for (const Point& point : points) {
    if (!point.outcome || point.outcome->violation.empty()) continue;
    const PointKey& key = point.key;
    throw unsound_plan(key.planner,
                       key.net + " at batch " + std::to_string(key.batch) + " on " + key.machine,
                       key.budget, point.outcome->violation);
  }
}

}  // namespace spillway
