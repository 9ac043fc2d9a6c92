#pragma once

#include <span>
#include <string>

#include "src/bench/link/link_bench.h"

namespace spillway::cli {

/// Rows for people: a line for each way and size, a time and a bandwidth for each direction.
[[nodiscard]] std::string link_table(std::span<const LinkRow> rows);

}  // namespace spillway::cli
