#include "src/cli/terminal/text_table.h"

#include <fmt/core.h>

#include <algorithm>

namespace spillway::cli {
namespace {

std::vector<std::size_t> widths_of(const std::vector<TableLine>& lines) {
  std::vector<std::size_t> widths;
  for (const TableLine& line : lines) {
    if (widths.size() < line.size()) widths.resize(line.size());
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  return widths;
}

}  // namespace

std::string text_table(const std::vector<TableLine>& lines, std::size_t left) {
  const std::vector<std::size_t> widths = widths_of(lines);
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

}  // namespace spillway::cli
