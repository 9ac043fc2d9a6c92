#pragma once

#include <optional>
#include <string_view>

#include "um/bandwidth.h"

namespace spillway::cli {

/// Reads "20us", "1.5ms", "500ns", "2s". Nothing when `text` is no such time.
[[nodiscard]] std::optional<um::Nanoseconds> parse_duration(std::string_view text);

}  // namespace spillway::cli
