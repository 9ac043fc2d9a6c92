#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace spillway::cli {

/// After `app` refused a command line: the sentence about the first subcommand or option in it that
/// does not exist, with the nearest name; nothing where all of them exist.
[[nodiscard]] std::optional<std::string> misspelling(const CLI::App& app);

}  // namespace spillway::cli
