#include <fmt/core.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "prefetch/files/machine.h"
#include "prefetch/planners/catalogue.h"
#include "src/cli/commands.h"

namespace spillway::cli {
namespace {

using Words = std::vector<std::string>;

// A subcommand as the user types it, "bench train", and its definition.
struct Context {
  std::string path;
  const CLI::App& command;
};

void add_contexts(const CLI::App& command, const std::string& path, std::vector<Context>& all) {
  all.push_back({path, command});
  for (const CLI::App* const inner : command.get_subcommands({})) {
    add_contexts(*inner, path.empty() ? inner->get_name() : path + " " + inner->get_name(), all);
  }
}

// Returns the members in "TEXT:{copy,managed,resident}".
Words listed_words(const std::string& type) {
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

template <class Range, class Name>
Words names_of(const Range& range, const Name& name) {
  Words names;
  for (const auto& each : range) names.emplace_back(name(each));
  return names;
}

// Returns the possible values of `option` where they are known; otherwise files complete.
Words values_of(const CLI::Option& option) {
  const std::string name = option.get_name(option.get_positional());
  if (name == "--net" || name == "name") {
    return names_of(nets::catalogue(), [](const auto& each) { return each.name; });
  }
  if (name == "--planner" || name == "--planners") {
    return names_of(prefetch::planners(), [](const auto& each) { return each->name(); });
  }
  if (name == "--machine" || name == "--machines") {
    return names_of(prefetch::built_in_machines(), [](const auto& each) { return each.name; });
  }
  if (name == "--resume") return {"auto"};
  return listed_words(option.get_type_name());
}

// Returns the words that may come next, except values of an option.
Words next_words(const CLI::App& command) {
  Words words;
  for (const CLI::App* const inner : command.get_subcommands({})) {
    words.push_back(inner->get_name());
  }
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_positional()) {
      const Words values = values_of(*option);
      words.insert(words.end(), values.begin(), values.end());
    } else {
      words.push_back("--" + option->get_lnames().front());
    }
  }
  return words;
}

// Returns the cases of a shell's case statement: words after each option of each subcommand.
std::string value_cases(const std::vector<Context>& contexts) {
  std::string cases;
  for (const auto& [path, command] : contexts) {
    for (const CLI::Option* const option : command.get_options()) {
      if (option->get_positional() || option->get_expected_max() == 0) continue;
      Words words = values_of(*option);
      if (option->get_expected_min() == 0) {  // its value is optional
        const Words next = next_words(command);
        words.insert(words.end(), next.begin(), next.end());
      }
      cases += fmt::format("    '{} --{}') choices='{}' ;;\n", path, option->get_lnames().front(),
                           fmt::join(words, " "));
    }
  }
  return cases;
}

std::string next_cases(const std::vector<Context>& contexts) {
  std::string cases;
  for (const auto& [path, command] : contexts) {
    cases += fmt::format("    '{}') choices='{}' ;;\n", path, fmt::join(next_words(command), " "));
  }
  return cases;
}

// Returns the subcommands that have subcommands, as a pattern of a shell's case statement.
std::string groups(const std::vector<Context>& contexts) {
  Words names;
  for (const auto& [path, command] : contexts) {
    if (!path.empty() && !command.get_subcommands({}).empty()) names.push_back(path);
  }
  return fmt::format("{}", fmt::join(names, "|"));
}

// Returns a function for both shells that prints the words that may come next. Its arguments are
// the last word before the cursor and the first two words after "spillway". It prints nothing after
// an option with unknown values: files complete.
std::string choose_words(const CLI::App& app) {
  std::vector<Context> contexts;
  add_contexts(app, "", contexts);
  return fmt::format(
      "_spillway_words() {{\n  local previous=$1 typed=$2 choices=\n"
      "  case \"$2\" in {}) typed=\"$2 $3\" ;; esac\n  typed=${{typed% }}\n"
      "  case \"$typed $previous\" in\n{}    *) case \"$typed\" in\n{}    esac ;;\n  esac\n"
      "  echo \"$choices\"\n}}\n",
      groups(contexts), value_cases(contexts), next_cases(contexts));
}

// Returns a bash script that completes subcommands, options and their values: names of networks,
// planners and machines, and words that an option lists.
std::string bash_completions(const CLI::App& app) {
  return choose_words(app) +
         "_spillway() {\n"
         "  local before=(\"${COMP_WORDS[@]:1:COMP_CWORD-1}\")\n"
         "  local words=$(_spillway_words \"${COMP_WORDS[COMP_CWORD-1]}\" \"${before[@]:0:2}\")\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -o default -F _spillway spillway\n";
}

// Returns the same for zsh.
std::string zsh_completions(const CLI::App& app) {
  return "#compdef spillway\n" + choose_words(app) +
         "_spillway() {\n"
         "  local before=(\"${(@)words[2,CURRENT-1]}\")\n"
         "  local found=($(_spillway_words \"${words[CURRENT-1]}\" \"${(@)before[1,2]}\"))\n"
         "  compadd -- $found || _files\n"
         "}\n"
         "_spillway \"$@\"\n";
}

// Escapes what roff would interpret: backslashes, hyphens where lines may break, and a dot or a
// quote at the beginning of a line.
std::string roff(std::string_view text) {
  std::string escaped;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) escaped += "\\&";
    begins_line = c == '\n';
    if (c == '\\' || c == '-') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Returns `text` as roff that begins a new line where `text` does, and fills the page's width.
std::string filled(const std::string& text) {
  std::istringstream lines{text};
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    result += (result.empty() ? "" : ".br\n") + roff(line) + "\n";
  }
  return result;
}

std::string entry(const CLI::Option& option) {
  const std::string name = option.get_positional() ? option.get_name(true) : option.get_name();
  const bool is_flag = option.get_expected_max() == 0;
  const std::string fallback = option.get_default_str();
  std::string head = fmt::format(".TP\n.B {}", roff(name));
  if (!is_flag) head += " " + roff(option.get_type_name());
  std::string description = filled(option.get_description());
  if (!is_flag && !fallback.empty()) description += ".br\n" + roff("Default: " + fallback) + "\n";
  return head + "\n" + description;
}

std::string section(const CLI::App& command, const std::string& name) {
  std::string text = fmt::format(".SS {}\n{}.\n", roff(name), roff(command.get_description()));
  for (const CLI::Option* const option : command.get_options()) {
    const bool is_help = option == command.get_help_ptr() || option == command.get_help_all_ptr();
    if (!is_help) text += entry(*option);
  }
  if (!command.get_footer().empty()) text += ".PP\n" + filled(command.get_footer());
  for (const CLI::App* const inner : command.get_subcommands({})) {
    text += section(*inner, name + " " + inner->get_name());
  }
  return text;
}

// Returns the manual page of `app` as roff: each subcommand with its options and examples.
std::string man_page(const CLI::App& app) {
  std::string text = fmt::format(
      ".TH SPILLWAY 1\n.SH NAME\nspillway \\- {}\n.SH SYNOPSIS\n.B spillway\n"
      "SUBCOMMAND [OPTIONS]\n.SH SUBCOMMANDS\n",
      roff(app.get_description()));
  for (const CLI::App* const command : app.get_subcommands({})) {
    text += section(*command, command->get_name());
  }
  return text +
         ".SH EXIT STATUS\n0 on success, 1 on failure, 2 on a wrong command line; when "
         "interrupted, 128 "
         "and the number of the signal: 130 by Ctrl\\-C, 143 by SIGTERM, 129 by SIGHUP.\n";
}

}  // namespace

void add_document_command(CLI::App& app) {
  using Writer = std::string (*)(const CLI::App&);
  static const std::map<std::string, Writer> writers{
      {"man", man_page}, {"bash", bash_completions}, {"zsh", zsh_completions}};
  CLI::App* const command =
      app.add_subcommand("document", "Print the manual page, or completions for a shell");
  const auto format = std::make_shared<std::string>();  // shared with the callback
  command->add_option("format", *format, "man (roff), bash or zsh")
      ->required()
      ->check(CLI::IsMember{writers});
  command->footer(
      "Example: spillway document bash > ~/.local/share/bash-completion/completions/spillway");
  command->callback([&app, format] { fmt::print("{}", writers.at(*format)(app)); });
}

}  // namespace spillway::cli
