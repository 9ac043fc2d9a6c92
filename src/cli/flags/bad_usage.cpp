#include "src/cli/flags/bad_usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "um/error.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

// Flags that have another name now, some with one of their values only.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kRenamed{
    {{"--trace", "--timeline"},
     {"--timelines", "--timeline"},
     {"--sub-batch auto", "--micro-batches auto"},
     {"--sub-batch", "--micro-batch-size"},
     {"--shards", "--micro-batches"},
     {"--shared-gpu", "--managed-limit"}}};

// Returns the command that was named last.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

// Returns "spillway bench train".
std::string command_line_of(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr ? command.get_name()
                           : command_line_of(*parent) + " " + command.get_name();
}

// Returns "bench train", as the sentence begins with "spillway: " anyway.
std::string short_name_of(const CLI::App& command) {
  const std::string line = command_line_of(command);
  return line.substr(command.get_parent() == nullptr ? 0 : line.find(' ') + 1);
}

// `unknown` begins with an option that the command does not know; its value may follow.
std::string misspelt_option(const CLI::App& command, const std::vector<std::string>& unknown) {
  std::string given = fmt::format("{}", fmt::join(unknown, " "));
  std::ranges::replace(given, '=', ' ');
  const std::string wrong = given.substr(0, given.find(' '));
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string sentence = short_name_of(command) + " has no option '" + wrong + "'; ";
  for (const auto& [before, now] : kRenamed) {
    const bool is_given = (given + ' ').starts_with(std::string{before} + ' ');
    if (is_given && std::ranges::count(names, std::string{now.substr(0, now.find(' '))}) > 0) {
      return sentence + "it is called '" + std::string{now} + "' now";
    }
  }
  const auto nearest = um::nearest_name(wrong, names);
  return sentence + (nearest ? "did you mean '" + *nearest + "'?"
                             : "see " + command_line_of(command) + " --help");
}

std::string misspelt_subcommand(const CLI::App& command, const std::string& wrong) {
  std::vector<std::string> names;
  for (const CLI::App* const each : command.get_subcommands({})) names.push_back(each->get_name());
  const auto nearest = um::nearest_name(wrong, names);
  const bool is_program = command.get_parent() == nullptr;
  std::error_code ignored;
  if (names.size() == 1 && !nearest && std::filesystem::exists(wrong, ignored)) {
    return fmt::format("{} needs a subcommand; did you mean '{} {} {}'?", short_name_of(command),
                       command_line_of(command), names.front(), wrong);
  }
  return fmt::format("{} no subcommand '{}'; {}",
                     is_program ? "there is" : short_name_of(command) + " has", wrong,
                     nearest ? "did you mean '" + *nearest + "'?"
                             : fmt::format("there are {}", fmt::join(names, ", ")));
}

// Returns a sentence about the first word that the command does not know; nothing if all are known.
std::optional<std::string> misspelling(const CLI::App& command) {
  const std::vector<std::string> unknown = command.remaining();
  if (unknown.empty()) return std::nullopt;
  const std::string& first = unknown.front();
  if (first.starts_with("--")) return misspelt_option(command, unknown);
  if (command.get_require_subcommand_min() > 0) return misspelt_subcommand(command, first);
  return short_name_of(command) + " takes no '" + first + "'; see " + command_line_of(command) +
         " --help";
}

// Returns "a, b or c" of "a,b,c".
std::string alternatives(std::string list) {
  for (std::size_t at = list.find(','); at != std::string::npos; at = list.find(',', at + 2)) {
    const bool is_last = list.find(',', at + 1) == std::string::npos;
    list.replace(at, 1, is_last ? " or " : ", ");
  }
  return list;
}

// Returns what CLI11 says in words of ours.
std::string reworded(const CLI::App& command, const std::string& said) {
  static const std::regex repeated{R"((\S+): At Most 1 required but received (\d+))"};
  static const std::regex without_value{R"((\S+): \d+ required .*missing)"};
  static const std::regex not_one_of{R"((\S+): ([^]*) not in \{([^]*)\})"};
  static const std::regex required{R"((\S+) is required)"};
  static const std::regex excluded{R"((\S+) excludes (\S+))"};
  static const std::regex needed{R"((\S+) requires (\S+))"};
  std::smatch part;
  if (std::regex_match(said, part, repeated)) {
    return part.str(1) + " is given " +
           (part[2] == "2" ? std::string{"twice"} : part.str(2) + " times");
  }
  if (std::regex_match(said, part, without_value)) return part.str(1) + " needs a value";
  if (std::regex_match(said, part, not_one_of)) {
    return part.str(1) + ": '" + part.str(2) + "' is not " + alternatives(part.str(3));
  }
  if (std::regex_match(said, part, required)) {
    return short_name_of(command) + " needs " + part.str(1) + "; see " + command_line_of(command) +
           " --help";
  }
  if (std::regex_match(said, part, excluded)) {
    return part.str(1) + " does not go with " + part.str(2);
  }
  if (std::regex_match(said, part, needed)) return part.str(1) + " needs " + part.str(2);
  return said;
}

}  // namespace

std::string sentence_about(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  if (auto sentence = misspelling(command)) return *std::move(sentence);
  return reworded(command, um::shortened(error.what()));
}

std::optional<std::string> help_without_subcommand(const CLI::App& app,
                                                   const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const bool is_lacking = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
                          command.get_require_subcommand_min() > 0 && command.remaining().empty();
  if (!is_lacking) return std::nullopt;
  return app.help();
}

}  // namespace spillway::cli
