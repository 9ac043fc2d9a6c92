#include "src/cli/misspelling.h"

#include <fmt/format.h>

#include <vector>

#include "src/cli/flags/suggest_name.h"

namespace spillway::cli {
namespace {

// "spillway bench train"
std::string command_line_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr ? command.get_name()
                           : command_line_of(*parent) + " " + command.get_name();
}

std::string misspelt_option(const CLI::App& command, const std::string& wrong) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const auto nearest = nearest_name(wrong, names);
  const std::string name = command_line_of(command);
  return fmt::format("{} has no option '{}'; {}", name, wrong,
                     nearest ? "did you mean '" + *nearest + "'?" : "see " + name + " --help");
}

std::string misspelt_subcommand(const CLI::App& command, const std::string& wrong) {
  std::vector<std::string> names;
  for (const CLI::App* const each : command.get_subcommands({})) names.push_back(each->get_name());
  const auto nearest = nearest_name(wrong, names);
  return fmt::format("{} has no subcommand '{}'; {}", command_line_of(command), wrong,
                     nearest ? "did you mean '" + *nearest + "'?"
                             : fmt::format("there are {}", fmt::join(names, ", ")));
}

}  // namespace

std::optional<std::string> misspelling(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  for (const std::string& unknown : command->remaining()) {
    if (unknown.starts_with("--")) {
      return misspelt_option(*command, unknown.substr(0, unknown.find('=')));
    }
    if (command->get_require_subcommand_min() > 0) return misspelt_subcommand(*command, unknown);
  }
  return std::nullopt;
}

}  // namespace spillway::cli
