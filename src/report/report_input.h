#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "src/report/training_log.h"

namespace spillway {

/// What the page draws of a Chrome trace of ours, times in microseconds: {"planner",
/// "budget_bytes", "on_demand", "processes": [{"name", "compute": [[begin, length, name, algorithm,
/// phase]], "stalls": [[begin, length, name]], "offload" and "prefetch": [[begin, length, name,
/// bytes]], "curve": [[time, bytes]], "near": as the trace has it}]}. What a trace does not say is
/// null or empty; lanes that are none of ours are left out. Throws: um::Error that names the place
/// of what is damaged.
[[nodiscard]] nlohmann::json timeline_data(const prefetch::JsonView& trace);

/// What a file of a report holds.
enum class ReportInputKind {
  kBench,     ///< "spillway-bench" version 2, checked; of version 1, made 2
  kTimeline,  ///< a Chrome trace, as `spillway train --timeline` writes it
  kTraining,  ///< a line a step, as `spillway train --json` writes it
  kPlan       ///< "spillway-plan" version 1
};

/// One file of a report.
struct ReportInput {
  std::string name;  ///< what the reader knows it by: its path, below the folder if that was given
  ReportInputKind kind = ReportInputKind::kBench;
  nlohmann::json content;  ///< of a timeline timeline_data(), of a training null, else the file's
  TrainingLog training = {};  ///< of a training
};

/// All files of a report, sorted by name.
struct ReportInputs {
  std::vector<ReportInput> files;
  /// JSON files in folders that cannot be shown, and folders in these that cannot be read, each
  /// with why: "a.json: not JSON, at byte 2".
  std::vector<std::string> left_out;
};

/// Reads files, and all *.json and *.jsonl files in folders and the folders in these. One that
/// cannot be read, is not JSON, is of another version, is damaged, or is of no kind that a report
/// knows is left out when it was found in a folder, as is a folder in it that cannot be read.
/// Throws: um::Error that names the file and what is wrong, when it was given by its own name; when
/// there is nothing to report.
[[nodiscard]] ReportInputs read_report_inputs(std::span<const std::string> paths);

}  // namespace spillway
