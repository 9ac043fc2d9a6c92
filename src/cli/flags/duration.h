#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "um/bytes.h"

namespace spillway::cli {

/// Reads "20us", "1.5ms", "500ns", "2s". Nothing when `text` is no such time.
[[nodiscard]] std::optional<um::Nanoseconds> parse_duration(std::string_view text);

/// `time` for people, in the unit that suits it: "1.2345 s", "12.345 ms", "123.45 us", "123 ns".
[[nodiscard]] std::string duration_text(um::Nanoseconds time);

}  // namespace spillway::cli
