#pragma once

#include <optional>
#include <string>

#include "src/cli/flags/cli11.h"

namespace CLI {  // NOLINT(readability-identifier-naming)
class ParseError;
}

namespace spillway::cli {

/// Returns one sentence about a command line of `app` that was refused with `error`: "--batch is
/// given twice".
[[nodiscard]] std::string sentence_about(const CLI::App& app, const CLI::ParseError& error);

/// Returns the help of the command that lacks its subcommand, as `spillway` and `spillway bench` do
/// alone; nullopt where something else is wrong.
[[nodiscard]] std::optional<std::string> help_without_subcommand(const CLI::App& app,
                                                                 const CLI::ParseError& error);

}  // namespace spillway::cli
