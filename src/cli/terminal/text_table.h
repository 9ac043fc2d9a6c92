#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spillway::cli {

/// One line of a table.
using TableLine = std::vector<std::string>;

/// Formats a table with columns aligned to the right, the first `left` ones to the left. Lines may
/// have fewer columns than others.
[[nodiscard]] std::string text_table(const std::vector<TableLine>& lines, std::size_t left = 1);

/// Joins as many of `fields` as fit `width` letters with two spaces; at least the first.
[[nodiscard]] std::string fitting(const std::vector<std::string>& fields, std::size_t width);

}  // namespace spillway::cli
