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

/// Throws: um::Error when a file cannot be written at `path`; so that a long run does not find out
/// at its end. An empty path and "-" are fine.
void expect_writable(const std::string& path);

}  // namespace spillway::cli
