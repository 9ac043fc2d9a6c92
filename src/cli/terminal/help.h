#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::cli {

/// Breaks each line of `text` into lines of at most `width` letters; all but the first begin with
/// `indent` blanks. Longer words stay whole, and so do lines that show a command ("Example: ...").
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

/// Returns a formatter of help texts that wraps them to the terminal's width. --help of a
/// subcommand with many options shows those that are usually enough; --help-all shows all.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> make_help_formatter();

}  // namespace spillway::cli
