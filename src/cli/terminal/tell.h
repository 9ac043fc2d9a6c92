#pragma once

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/plan/arena_use.h"

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

/// Gives each of the descriptors 0 to 2 that the program was started without a stream that refuses
/// to be read or written, so that no file it opens is taken for one of them. The first thing
/// main() does.
void open_missing_streams() noexcept;

/// Flushes standard output. Throws: um::Error when not all that was written to it has arrived.
void expect_output_written();

/// {"extent_bytes":…,"arena_bytes":…,"fits":…}
[[nodiscard]] nlohmann::json places_json(const ArenaUse& use);

/// For people: "fixed places in 1.20 GiB of 1.25 GiB". `use` is what places_json() gives.
[[nodiscard]] std::string describe_places(const nlohmann::json& use);

/// One line of a table for people.
using TableLine = std::vector<std::string>;

/// The lines below each other, columns aligned to the right but for the first `left` ones.
/// Lines may have fewer columns than others.
[[nodiscard]] std::string text_table(const std::vector<TableLine>& lines, std::size_t left = 1);

}  // namespace spillway::cli
