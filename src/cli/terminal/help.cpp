#include "src/cli/terminal/help.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "src/cli/terminal/terminal.h"

namespace spillway::cli {
namespace {

constexpr std::size_t kColumn = 30;   // in which descriptions begin
constexpr std::size_t kWidest = 120;  // longer lines are hard to read

// The options of a subcommand that are usually enough, by its full name.
struct FirstOptions {
  std::string_view command;
  std::string_view options;
};
constexpr std::array kFirstOptions{
    FirstOptions{"spillway train",
                 "--net --batch --data --epochs --steps --lr --budget --far --checkpoint --resume "
                 "--json"},
    FirstOptions{"spillway plan",
                 "--net --batch --trace-in --machine --budget --planner --memory --out --timeline "
                 "--json"},
    FirstOptions{"spillway sweep",
                 "--net --batch --machines --budgets --planners --links --memory --json --plot"},
    FirstOptions{"spillway profile", "--net --batch --device --threads --out"},
    FirstOptions{"spillway evaluate", "--best --data --budget --confusion --json"},
    FirstOptions{"spillway predict", "--best --data --count --top --json"},
    FirstOptions{"spillway bench train",
                 "--net --budgets --batches --strategies --planners --far --quick --seconds --json "
                 "--timeline"}};

std::size_t help_width() {
  return std::clamp(terminal_width(STDOUT_FILENO), kColumn + 20, kWidest);
}

// Adds `line`, broken at blanks, to `text`.
void add_wrapped(std::string_view line, std::size_t width, std::size_t indent, std::size_t column,
                 std::string& text) {
  while (line.size() > width - std::min(width, column)) {
    const std::size_t room = width - std::min(width, column);
    std::size_t end = line.rfind(' ', room);
    if (end == std::string_view::npos || end <= line.find_first_not_of(' ')) {
      end = line.find(' ', room);
    }
    if (end == std::string_view::npos) break;
    text += line.substr(0, end);
    text += '\n' + std::string(indent, ' ');
    column = indent;
    line.remove_prefix(end + 1);
  }
  text += line;
}

class HelpFormatter final : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                      CLI::AppFormatMode mode) const override {
    std::string text = wrapped(make_description(app), help_width(), 0) + make_usage(app, name) +
                       make_positionals(app);
    const std::vector<const CLI::Option*> first = first_options(app, name);
    const bool is_short = mode != CLI::AppFormatMode::All && !first.empty();
    text += is_short ? make_group("Usually enough", false, first) : make_groups(app, mode);
    if (is_short) {
      const std::size_t all =
          app->get_options([](const CLI::Option* option) { return option->nonpositional(); })
              .size();
      text += fmt::format("\n{} --help-all shows all {} options.\n", name, all);
    }
    return text + make_subcommands(app, CLI::AppFormatMode::Normal) + "\n" + make_footer(app);
  }

  [[nodiscard]] std::string make_option(const CLI::Option* option,
                                        bool is_positional) const override {
    return entry(make_option_name(option, is_positional) + make_option_opts(option),
                 make_option_desc(option));
  }

  [[nodiscard]] std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_display_name(true), command->get_description());
  }

  [[nodiscard]] std::string make_footer(const CLI::App* app) const override {
    return wrapped(CLI::Formatter::make_footer(app), help_width(), 0);
  }

 private:
  static std::string entry(const std::string& name, const std::string& description) {
    constexpr std::size_t kIndent = 2;
    std::string text(kIndent, ' ');
    add_wrapped(name, help_width(), 3 * kIndent, kIndent, text);
    text += text.size() < kColumn ? std::string(kColumn - text.size(), ' ')
                                  : "\n" + std::string(kColumn, ' ');
    std::istringstream lines{description};
    bool is_first = true;
    for (std::string line; std::getline(lines, line); is_first = false) {
      if (!is_first) text += "\n" + std::string(kColumn, ' ');
      const std::size_t own = line.find_first_not_of(' ');  // what a list begins with
      const std::size_t hanging = own == std::string::npos || own == 0 ? 0 : own + 2;
      add_wrapped(line, help_width(), kColumn + hanging, kColumn, text);
    }
    return text + "\n";
  }

  // Empty where all are shown.
  static std::vector<const CLI::Option*> first_options(const CLI::App* app,
                                                       const std::string& name) {
    const auto* const row = std::ranges::find(kFirstOptions, name, &FirstOptions::command);
    if (row == kFirstOptions.end()) return {};
    std::vector<const CLI::Option*> options;
    std::istringstream words{std::string{row->options}};
    for (std::string word; words >> word;) options.push_back(app->get_option(word));
    return options;
  }
};

}  // namespace

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.starts_with("Example: ")) {
      result += line;
    } else {
      add_wrapped(line, width, indent, 0, result);
    }
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::shared_ptr<CLI::FormatterBase> make_help_formatter() {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(kColumn);
  return formatter;
}

}  // namespace spillway::cli
