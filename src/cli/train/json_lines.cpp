#include "src/cli/train/json_lines.h"

#include <cerrno>
#include <iostream>

#include "um/error.h"

namespace spillway::cli {

JsonLines::JsonLines(const std::string& path) : path_{path} {
  if (path.empty() || path == "-") return;
  file_.open(path);
  if (!file_) throw um::system_error("cannot write " + path, errno);
}

void JsonLines::write(const nlohmann::json& object) {
  if (path_.empty()) return;
  std::ostream& out = path_ == "-" ? std::cout : file_;
  out << object.dump() << std::endl;
  if (!out) {
    throw um::system_error("cannot write " + (path_ == "-" ? "to standard output" : path_), errno);
  }
}

}  // namespace spillway::cli
