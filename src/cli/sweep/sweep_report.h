#pragma once

#include <span>

#include "src/sweep/point.h"

namespace spillway::cli {

/// Prints a table for each scenario: a line a budget, a column a strategy, makespan over the time
/// of a step with room for everything. `points` come by sweep point, each with the same strategies.
void print_sweep(std::span<const Point> points);

}  // namespace spillway::cli
