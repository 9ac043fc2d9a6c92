#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway {

/// Returns "rank 1 on node-a", "ranks 0 to 3 on node-a, rank 6 on node-b and 12 others". `nodes`
/// are node names by rank. Requires: `ranks` is sorted and not empty.
[[nodiscard]] std::string rank_names(std::span<const std::size_t> ranks,
                                     std::span<const std::string> nodes);

/// Returns the message of a rank that has received nothing from the `silent` ranks for
/// `time_limit`.
[[nodiscard]] std::string silence(std::span<const std::size_t> silent,
                                  std::span<const std::string> nodes,
                                  std::chrono::milliseconds time_limit);

/// Parses a rank or a number of ranks, as flags and launchers give it: only digits.
[[nodiscard]] std::optional<std::size_t> parse_rank_count(std::string_view text);

}  // namespace spillway
