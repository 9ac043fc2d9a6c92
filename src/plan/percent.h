#pragma once

#include <optional>
#include <string_view>

namespace spillway {

/// Reads "40%" as 0.4, up to a million percent. Nothing when `text` is no such part.
[[nodiscard]] std::optional<double> parse_percent(std::string_view text);

}  // namespace spillway
