#include "src/cli/bench/paging_table.h"

#include <fmt/core.h>

#include <vector>

#include "src/cli/bench/timing_text.h"
#include "src/cli/terminal/text_table.h"

namespace spillway::cli {

std::string paging_table(std::span<const PagingRow> rows) {
  std::vector<TableLine> lines{
      {"size", "pattern", "way", "time", "plain", "ratio", "faults", "evictions", "in", "out"}};
  for (const PagingRow& row : rows) {
    lines.push_back({fmt::format("{:g}x", row.near_times), to_string(row.pattern),
                     to_string(row.way), time_text(row.time), time_text(row.plain),
                     fmt::format("{:.2f}", row.ratio()), fmt::format("{}", row.counters.faults),
                     fmt::format("{}", row.counters.evictions),
                     um::to_string(row.counters.bytes_prefetched),
                     um::to_string(row.counters.bytes_offloaded)});
  }
  constexpr std::size_t kNames = 3;
  return text_table(lines, kNames);
}

}  // namespace spillway::cli
