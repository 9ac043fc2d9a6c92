#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "src/report/report_input.h"

namespace spillway {

/// What the page shows: {"version", "machines": [{"machine", "benches": [{"file", "bench", "date",
/// "seconds", "build", "load", "paging", "options", "rows", "verdict", "comparison", "runs"}]}],
/// "timelines": [{"file", …timeline_data()}], "trainings": [{"file", …training_data()}], "plans":
/// [{"file", "planner", …}], "left_out": [complaint]}. Of a bench of trainings, "runs" are the
/// distinct_runs() among "rows". Measurements stand below their machine and device, each of which
/// occurs once: what was measured on two never meets. Files are in the order of the inputs,
/// machines in that of their first file.
[[nodiscard]] nlohmann::json report_data(const ReportInputs& inputs, const std::string& version);

}  // namespace spillway
