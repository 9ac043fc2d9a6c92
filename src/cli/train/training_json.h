#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "src/train/trainer.h"
#include "src/train/training_summary.h"

namespace spillway::cli {

/// Returns the summary of train --json: settings and results, without the times, which the report
/// adds. `far` is far memory as the user named it.
[[nodiscard]] nlohmann::json training_json(const Trainer& trainer, const TrainingSummary& summary,
                                           const std::string& far);

/// Writes JSON objects, one per line, to a file or standard output as they come.
class JsonLines {
 public:
  /// Writes nothing if `path` is empty, and to standard output for "-".
  /// Throws: um::Error when the file cannot be opened.
  explicit JsonLines(const std::string& path);

  /// Throws: um::Error when the file cannot be written.
  void write(const nlohmann::json& object);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace spillway::cli
