#pragma once

#include <string_view>

namespace spillway::dropin {

/// Writes "spillway_um_preload: PROGRAM: TEXT" and the line's end to standard error.
void write_line(std::string_view text) noexcept;

}  // namespace spillway::dropin
