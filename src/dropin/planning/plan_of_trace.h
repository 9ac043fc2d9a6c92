#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "src/dropin/planning/plan_request.h"

namespace spillway::dropin {

/// Plans, verifies and simulates `trace`, a spillway-trace: the answer of spillway_plan_trace().
/// Throws: um::Error that names what is wrong with the trace or the planner.
[[nodiscard]] nlohmann::json plan_trace(const std::string& trace,
                                        const PlanOfTraceRequest& request);

}  // namespace spillway::dropin
