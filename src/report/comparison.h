#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/bench/train/train_row.h"

namespace spillway {

/// What a row of `bench train` or `bench planners` is known by: its strategy, and where this has a
/// plan of another's or runs in another memory than usual, that: "joint", "copy", "vdnn_all
/// (copy)".
[[nodiscard]] std::string strategy_label(const TrainRow& row);

/// All that was measured of one network at one batch and budget.
struct ComparisonLine {
  TrainRowKey key;                               ///< of its first row, but for the strategy
  std::vector<std::optional<std::size_t>> rows;  ///< by column: which row of the file
  /// The columns of the fastest: several where they are equal within their spread, none where
  /// not two ran, or what has not settled may be faster. The resident step is the measure, and
  /// takes no part.
  std::vector<std::size_t> fastest;
};

/// Rows of `bench train` or `bench planners` as a table.
struct Comparison {
  std::vector<std::string> columns;  ///< strategy_label()s
  std::vector<ComparisonLine> lines;
  std::vector<bool> settled;  ///< by row: find_settled()
};

/// Lines come in the order of series, network, image size, batch, then from the largest budget
/// down. The resident row, of which the file tells what it needed, is on the line of the budget
/// that is called as its own ("100%"), whatever that came to in bytes. The fastest are those of
/// find_winners(). Of two rows with one place in the table the first counts.
[[nodiscard]] Comparison compare(std::span<const TrainRow> rows);

/// Which rows of `bench train` or `bench planners` tell of a run that none before them tells of.
/// One run is the same network, image size, batch, strategy and budget in two series, and the
/// resident run, which has no budget, wherever it stands. A row that says why a run is none of its
/// series ("more than the budget") tells of a case of its own.
[[nodiscard]] std::vector<std::size_t> distinct_runs(std::span<const TrainRow> rows);

}  // namespace spillway
