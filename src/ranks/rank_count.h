#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace spillway {

/// A number of ranks, or of one of them, as flags and launchers give it: digits and nothing else.
[[nodiscard]] std::optional<std::size_t> parse_rank_count(std::string_view text);

}  // namespace spillway
