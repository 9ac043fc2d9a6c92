#pragma once

#include <span>
#include <string>

#include "src/bench/paging/paging_bench.h"

namespace spillway::cli {

/// Rows for people: a line for each pattern, size and way, with its counters.
[[nodiscard]] std::string paging_table(std::span<const PagingRow> rows);

}  // namespace spillway::cli
