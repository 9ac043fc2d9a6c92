#include "src/report/step_table.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/report/training_log.h"
#include "um/error.h"

namespace spillway {
namespace {

// As a cell: quoted where that is needed (RFC 4180).
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

void append(std::span<const double> figures, std::string& line) {
  for (const double figure : figures) {
    line += ',';
    if (std::isfinite(figure)) line += fmt::format("{}", figure);
  }
}

void append_rows(const ReportInput& input, std::string& table) {
  const std::string name = quoted(input.name);
  auto evaluation = input.training.evaluations.begin();
  const auto end = input.training.evaluations.end();
  for (const TrainingStep& step : input.training.steps) {
    while (evaluation != end && evaluation->step < step.step) ++evaluation;
    table += fmt::format("{},{},{}", name, step.step, step.epoch);
    append(step.figures, table);
    if (evaluation != end && evaluation->step == step.step) {
      append(evaluation->figures, table);
    } else {
      table.append(kEvaluationFigures.size(), ',');
    }
    table += '\n';
  }
}

}  // namespace

std::string step_table(const ReportInputs& inputs) {
  std::string table = fmt::format("training,step,epoch,{},{}\n", fmt::join(kStepFigures, ","),
                                  fmt::join(kEvaluationFigures, ","));
  bool has_training = false;
  for (const ReportInput& input : inputs.files) {
    if (input.kind != ReportInputKind::kTraining) continue;
    has_training = true;
    append_rows(input, table);
  }
  if (!has_training) {
    throw um::Error{
        "the steps of a training are what 'spillway train --json FILE' writes, and none of these "
        "files is one"};
  }
  return table;
}

}  // namespace spillway
