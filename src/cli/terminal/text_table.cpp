#include "src/cli/terminal/text_table.h"

#include <fmt/core.h>

#include <algorithm>

namespace spillway::cli {

std::string text_table(const std::vector<TableLine>& lines, std::size_t left) {
  std::vector<std::size_t> widths;
  for (const TableLine& line : lines) {
    if (widths.size() < line.size()) widths.resize(line.size());
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string table;
  for (const TableLine& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i > 0) text += "  ";
      text += i < left ? fmt::format("{:<{}}", line[i], widths[i])
                       : fmt::format("{:>{}}", line[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    table += text + '\n';
  }
  return table;
}

std::string fitting(const std::vector<std::string>& fields, std::size_t width) {
  std::string line;
  for (const std::string& field : fields) {
    if (line.empty()) {
      line = field;
    } else if (line.size() + 2 + field.size() <= width) {
      line += "  " + field;
    } else {
      break;
    }
  }
  return line;
}

}  // namespace spillway::cli
