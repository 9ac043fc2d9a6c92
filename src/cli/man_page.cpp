#include "src/cli/man_page.h"

#include <fmt/core.h>

#include <sstream>
#include <string_view>

namespace spillway::cli {
namespace {

// Without what roff would read as its own: backslashes, hyphens that could be cut at the end of a
// line, and a dot or a quote that begins a line.
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

// Its lines as they are.
std::string roff_lines(const std::string& text) { return ".nf\n" + roff(text) + "\n.fi\n"; }

std::string entry(const CLI::Option& option) {
  const std::string name = option.get_positional() ? option.get_name(true) : option.get_name();
  const bool is_flag = option.get_expected_max() == 0;
  const std::string fallback = option.get_default_str();
  std::string head = fmt::format(".TP\n.B {}", roff(name));
  if (!is_flag) head += " " + roff(option.get_type_name());
  std::istringstream lines{option.get_description()};
  std::string description;
  for (std::string line; std::getline(lines, line);) {
    description += (description.empty() ? "" : ".br\n") + roff(line) + "\n";
  }
  if (!is_flag && !fallback.empty()) description += ".br\n" + roff("Default: " + fallback) + "\n";
  return head + "\n" + description;
}

std::string section(const CLI::App& command, const std::string& name) {
  std::string text = fmt::format(".SS {}\n{}.\n", roff(name), roff(command.get_description()));
  for (const CLI::Option* const option : command.get_options()) {
    if (option != command.get_help_ptr()) text += entry(*option);
  }
  if (!command.get_footer().empty()) text += ".PP\n" + roff_lines(command.get_footer());
  for (const CLI::App* const inner : command.get_subcommands({})) {
    text += section(*inner, name + " " + inner->get_name());
  }
  return text;
}

}  // namespace

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

}  // namespace spillway::cli
