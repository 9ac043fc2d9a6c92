#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace spillway {

/// What a row of `bench train` or `bench planners` is known by: its strategy, and where this has a
/// plan of another's or runs in another memory than usual, that: "joint", "copy", "vdnn_all
/// (copy)".
[[nodiscard]] std::string strategy_label(const nlohmann::json& row);

/// All that was measured of one network at one batch and budget.
struct ComparisonLine {
  std::string series;
  std::string net;
  std::uint64_t image_size = 0;
  std::uint64_t batch = 0;
  std::string budget;
  std::uint64_t budget_bytes = 0;
  std::vector<std::optional<std::size_t>> rows;  ///< by column: which row of the file
  /// The columns of the fastest: several where they are equal within their spread, none where
  /// not two ran. The resident step is the measure, and takes no part.
  std::vector<std::size_t> fastest;
};

/// Rows of `bench train` or `bench planners` as a table.
struct Comparison {
  std::vector<std::string> columns;  ///< strategy_label()s
  std::vector<ComparisonLine> lines;
};

/// Lines come in the order of series, network, image size, batch, then from the largest budget
/// down. The resident row, of which the file tells what it needed, is on the line of the budget
/// that is called as its own ("100%"), whatever that came to in bytes. Strategies are
/// compared by their ratio to the resident step where all on the line have one, else by their
/// median step. Two are equal within their spread where their median absolute deviations, 3 % for a
/// single run, make them meet. Of two rows with one place in the table the first counts.
[[nodiscard]] Comparison compare(const nlohmann::json& rows);

}  // namespace spillway
