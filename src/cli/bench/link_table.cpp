#include "src/cli/bench/link_table.h"

#include <fmt/core.h>

#include <vector>

#include "src/cli/bench/timing_text.h"
#include "src/cli/terminal/text_table.h"

namespace spillway::cli {
namespace {

bool are_on_one_line(const LinkRow& a, const LinkRow& b) {
  return a.way == b.way && a.size == b.size;
}

// Columns after the way and the size.
std::size_t column_of(Direction direction) {
  constexpr std::size_t kFirst = 2;
  return kFirst + 2 * static_cast<std::size_t>(direction);
}

}  // namespace

std::string link_table(std::span<const LinkRow> rows) {
  std::vector<TableLine> lines{
      {"way", "size", "in", "GB/s", "out", "GB/s", "both", "GB/s", "held"}};
  const LinkRow* previous = nullptr;
  for (const LinkRow& row : rows) {
    if (previous == nullptr || !are_on_one_line(*previous, row)) {
      lines.push_back({to_string(row.way), um::to_string(row.size), "-", "", "-", "", "-", "",
                       time_text(row.call)});
    }
    previous = &row;
    TableLine& line = lines.back();
    line[column_of(row.direction)] = time_text(row.time);
    line[column_of(row.direction) + 1] = fmt::format("{:.2f}", row.bytes_per_second() * 1e-9);
  }
  return text_table(lines);
}

}  // namespace spillway::cli
