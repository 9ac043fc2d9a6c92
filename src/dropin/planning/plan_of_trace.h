#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::dropin {

/// What is asked of the plan of a trace; spillway_plan.h says what each means.
struct PlanOfTraceRequest {
  std::optional<um::Bytes> budget;
  std::string planner = "joint";
  bool may_recompute = true;
  bool in_parts = false;
  bool offload_weights = false;
  bool with_timeline = false;
  prefetch::LinkProfile link;
};

/// Throws: um::Error that names what is wrong with `text`, JSON.
[[nodiscard]] PlanOfTraceRequest read_plan_request(const std::string& text);

/// Plans, verifies and simulates `trace`, a spillway-trace: the answer of spillway_plan_trace().
/// Throws: um::Error that names what is wrong with the trace or the planner.
[[nodiscard]] nlohmann::json plan_trace(const std::string& trace,
                                        const PlanOfTraceRequest& request);

}  // namespace spillway::dropin
