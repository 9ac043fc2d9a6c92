#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

/// One line of a table for people.
using TableLine = std::vector<std::string>;

/// The lines below each other, columns aligned to the right but for the first `left` ones.
/// Lines may have fewer columns than others.
[[nodiscard]] std::string text_table(const std::vector<TableLine>& lines, std::size_t left = 1);

}  // namespace spillway::cli
