#pragma once

#include <optional>
#include <string_view>

namespace spillway::um {

/// Reads a number with an optional byte unit, "1.5 GiB" or "40GB", as bytes. Nothing when `text` is
/// no finite, non-negative amount.
[[nodiscard]] std::optional<double> parse_amount(std::string_view text);

}  // namespace spillway::um
