#pragma once

#include <span>
#include <string>

#include "src/bench/link/launch_bench.h"
#include "src/bench/link/link_bench.h"
#include "src/bench/paging/paging_bench.h"
#include "src/bench/repetition.h"
#include "src/bench/train/train_row.h"

namespace spillway::cli {

/// The median for people, "12.345 ms"; with a ~ behind it when it has not settled, else a space.
[[nodiscard]] std::string time_text(const TimingSummary& timing);

/// A line for each way and size, a time and a bandwidth for each direction.
[[nodiscard]] std::string link_table(std::span<const LinkRow> rows);
[[nodiscard]] std::string launch_table(std::span<const LaunchRow> rows);

/// A line for each pattern, size and way, with its counters.
[[nodiscard]] std::string paging_table(std::span<const PagingRow> rows);

/// Prints `rows` to standard output: those that are compared with each other under one heading, the
/// fastest marked.
void print_training_rows(std::span<const TrainRow> rows);

}  // namespace spillway::cli
