#include "src/cli/document_command.h"

#include <fmt/core.h>

#include <map>
#include <memory>
#include <string>

#include "src/cli/completions.h"
#include "src/cli/man_page.h"

namespace spillway::cli {

void add_document_command(CLI::App& app) {
  using Writer = std::string (*)(const CLI::App&);
  static const std::map<std::string, Writer> writers{
      {"man", man_page}, {"bash", bash_completions}, {"zsh", zsh_completions}};
  CLI::App* const command =
      app.add_subcommand("document", "Print the manual page, or completions for a shell");
  const auto format = std::make_shared<std::string>();  // shared: the callback keeps it
  command->add_option("format", *format, "man (roff), bash or zsh")
      ->required()
      ->check(CLI::IsMember{writers});
  command->footer(
      "Example: spillway document bash > ~/.local/share/bash-completion/completions/spillway");
  command->callback([&app, format] { fmt::print("{}", writers.at(*format)(app)); });
}

}  // namespace spillway::cli
