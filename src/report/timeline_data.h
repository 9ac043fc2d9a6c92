#pragma once

#include <nlohmann/json.hpp>

#include "prefetch/files/json.h"

namespace spillway {

/// What the page draws of a Chrome trace of ours, times in microseconds: {"planner",
/// "budget_bytes", "on_demand", "processes": [{"name", "compute": [[begin, length, name, algorithm,
/// phase]], "stalls": [[begin, length, name]], "offload" and "prefetch": [[begin, length, name,
/// bytes]], "curve": [[time, bytes]], "near": as the trace has it}]}. What a trace does not say is
/// null or empty; lanes that are none of ours are left out. Throws: um::Error that names the place
/// of what is damaged.
[[nodiscard]] nlohmann::json timeline_data(const prefetch::JsonView& trace);

}  // namespace spillway
