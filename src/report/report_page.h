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

/// The steps of all trainings among `inputs` as CSV: a header, then a line a step with the file it
/// is of, its number and epoch, kStepFigures, and where it was followed by an evaluation
/// kEvaluationFigures. What a file does not tell, or is no number, is an empty cell.
/// Throws: um::Error when there is no training.
[[nodiscard]] std::string step_table(const ReportInputs& inputs);

/// `data` as JSON that may stand between <script> tags: nothing in it ends the script or begins a
/// comment, and it is all ASCII. What is not UTF-8 becomes U+FFFD.
[[nodiscard]] std::string script_json(const nlohmann::json& data);

/// One HTML page with everything in it, which opens from a file without a network, and shows
/// `data`, as report_data() makes it.
[[nodiscard]] std::string make_page(const nlohmann::json& data);

}  // namespace spillway
