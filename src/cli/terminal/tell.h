#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace spillway::cli {

/// Writes `text` to standard error as far as that can be written: what the user is told beside a
/// result must not end the work on it.
void tell(std::string_view text) noexcept;

/// From now on tell() writes nothing: another process says the same.
void be_silent() noexcept;

/// The same with fmt's format strings.
template <typename First, typename... Others>
void tell(fmt::format_string<First, Others...> format, First&& first, Others&&... others) {
  tell(std::string_view{
      fmt::format(format, std::forward<First>(first), std::forward<Others>(others)...)});
}

}  // namespace spillway::cli
