#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace spillway {

/// What a file of a report holds.
enum class ReportInputKind {
  kBench,     ///< "spillway-bench" version 1, checked
  kTimeline,  ///< a Chrome trace, as `spillway train --trace` writes it
  kPlan       ///< "spillway-plan" version 1
};

/// One file of a report.
struct ReportInput {
  std::string name;  ///< what the reader knows it by: its path, below the folder if that was given
  ReportInputKind kind = ReportInputKind::kBench;
  nlohmann::json content;  ///< of a timeline timeline_data(), else the file's
};

/// All files of a report, sorted by name.
struct ReportInputs {
  std::vector<ReportInput> files;
  std::vector<std::string> left_out;  ///< JSON files in folders that are none of the three kinds
};

/// Reads files, and all *.json files in folders and the folders in these.
/// Throws: um::Error that names the file and what is wrong: one that cannot be read, is not JSON,
/// is of another version, is damaged; one given by its own name that is of no kind that a report
/// knows; nothing to report.
[[nodiscard]] ReportInputs read_report_inputs(std::span<const std::string> paths);

}  // namespace spillway
