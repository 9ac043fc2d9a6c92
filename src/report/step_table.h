#pragma once

#include <string>

#include "src/report/report_input.h"

namespace spillway {

/// The steps of all trainings among `inputs` as CSV: a header, then a line a step with the file it
/// is of, its number and epoch, kStepFigures, and where it was followed by an evaluation
/// kEvaluationFigures. What a file does not tell, or is no number, is an empty cell.
/// Throws: um::Error when there is no training.
[[nodiscard]] std::string step_table(const ReportInputs& inputs);

}  // namespace spillway
