#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace spillway::cli {

/// Writes `text` to standard error and ignores failures: a message must not end the work that it is
/// about.
void tell(std::string_view text) noexcept;

/// Formats with fmt and writes the result as tell(text) does.
template <typename First, typename... Others>
void tell(fmt::format_string<First, Others...> format, First&& first, Others&&... others) {
  tell(std::string_view{
      fmt::format(format, std::forward<First>(first), std::forward<Others>(others)...)});
}

/// Silences tell() from now on, as another rank prints the same.
void be_silent() noexcept;

/// Opens each missing descriptor of 0 to 2 as a stream that cannot be read or written. Otherwise a
/// file could get its number. main() calls it first.
void open_missing_streams() noexcept;

/// Flushes standard output. Throws: um::Error if any output has been lost.
void expect_output_written();

}  // namespace spillway::cli
