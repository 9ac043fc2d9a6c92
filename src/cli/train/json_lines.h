#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace spillway::cli {

/// Writes JSON objects one a line to a file or standard output, as they come.
class JsonLines {
 public:
  /// An empty `path` writes nothing, "-" is standard output.
  /// Throws: um::Error when the file cannot be opened.
  explicit JsonLines(const std::string& path);

  /// Throws: um::Error when it cannot be written.
  void write(const nlohmann::json& object);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace spillway::cli
