#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace spillway {

/// "rank 1 on node-a", "ranks 0 to 3 on node-a, rank 6 on node-b and 12 others". `nodes` are the
/// nodes' names by rank. Requires: `ranks` is in order and not empty.
[[nodiscard]] std::string rank_names(std::span<const std::size_t> ranks,
                                     std::span<const std::string> nodes);

/// The sentence of a rank that has heard nothing of the `silent` ones for `time_limit`.
[[nodiscard]] std::string silence(std::span<const std::size_t> silent,
                                  std::span<const std::string> nodes,
                                  std::chrono::milliseconds time_limit);

/// A number of ranks, or of one of them, as flags and launchers give it: digits and nothing else.
[[nodiscard]] std::optional<std::size_t> parse_rank_count(std::string_view text);

}  // namespace spillway
