#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "prefetch/profile.h"
#include "um/bytes.h"

namespace spillway::dropin {

/// The options of a plan for a trace; spillway_plan.h explains each.
struct PlanOfTraceRequest {
  std::optional<um::Bytes> budget;
  std::string planner = "joint";
  bool may_recompute = true;
  bool in_parts = false;
  bool offload_weights = false;
  bool with_timeline = false;
  prefetch::LinkProfile link;
};

/// Throws: um::Error that names the mistake in `text`, which is JSON.
[[nodiscard]] PlanOfTraceRequest read_plan_request(const std::string& text);

/// Plans, verifies and simulates `trace`, a spillway-trace, and returns the answer of
/// spillway_plan_trace(). Throws: um::Error that names the mistake in the trace or the planner.
[[nodiscard]] nlohmann::json plan_trace(const std::string& trace,
                                        const PlanOfTraceRequest& request);

}  // namespace spillway::dropin
