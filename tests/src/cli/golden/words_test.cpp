// The help of every subcommand and the manual page, word for word.

#include <gtest/gtest.h>

#include <CLI/Version.hpp>
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/expect_text.h"
#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

constexpr const char* kHelps = "src/cli/golden/help.txt";

// Skips the test where other versions of CLI11 print the same flags in other words.
class Words : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string{CLI11_VERSION} != "2.1.2") GTEST_SKIP() << "these are CLI11 2.1.2's words";
  }
};

// Returns the names that stand below "Subcommands:".
Arguments subcommands_in(const std::string& help) {
  Arguments names;
  std::istringstream lines{help};
  std::string line;
  while (std::getline(lines, line) && line != "Subcommands:") {
  }
  while (std::getline(lines, line) && line.starts_with("  ")) {
    if (line.starts_with("   ")) continue;  // of the description before
    names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

// Adds the whole help of `command` and of its subcommands, by their names.
void add_helps(const Arguments& command, const std::string& name,
               std::map<std::string, std::string>& helps) {
  const std::string& help = helps[name] = succeed({command, "--help-all"}).output;
  for (const std::string& subcommand : subcommands_in(help)) {
    add_helps({command, subcommand}, (name + " ").append(subcommand), helps);
  }
}

std::map<std::string, std::string> all_helps() {
  std::map<std::string, std::string> helps;
  add_helps({}, "spillway", helps);
  EXPECT_GE(helps.size(), 20U) << "subcommands are missing in spillway --help";
  return helps;
}

// Returns `whole` with the first line alone of each flag that `help` explains in the same words.
std::string shortened(const std::string& whole, const std::string& help) {
  std::string text;
  std::istringstream lines{whole};
  std::string flag;  // with all of its lines
  const auto end_flag = [&] {
    text +=
        help.find("\n" + flag) == std::string::npos ? flag : flag.substr(0, flag.find('\n') + 1);
    flag.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    const bool goes_on = !flag.empty() && line.starts_with("      ");
    if (!flag.empty() && !goes_on) end_flag();
    (goes_on || line.starts_with("  -") ? flag : text) += line + "\n";
  }
  if (!flag.empty()) end_flag();
  return text;
}

TEST_F(Words, OfTheHelpOfEverySubcommandAreAsTheyWere) {
  std::set<std::string> names;
  const std::map<std::string, std::string> helps = all_helps();
  std::string known = helps.at("spillway train");
  for (const auto& [name, help] : helps) {
    expect_text(kHelps, name, name == "spillway train" ? help : shortened(help, known));
    known += help;
    names.insert(name);
    const std::size_t blank = std::min(name.find(' '), name.size());
    const std::string brief = succeed({name.substr(blank).c_str(), "--help"}).output;
    if (brief == help) continue;
    names.insert(name + " in short");
    expect_text(kHelps, name + " in short", shortened(brief, help));
  }
  expect_only_sections(kHelps, names);
}

// Returns what stands in `text` behind `begin` and before the next `end`.
std::string part_of(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t at = text.find(begin);
  EXPECT_NE(at, std::string::npos) << "no '" << begin << "'";
  if (at == std::string::npos) return "";
  const std::size_t from = at + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

TEST_F(Words, OfTheManualPageAndCompletionsNameEveryFlagOfEverySubcommand) {
  const std::string manual =
      with_all_replaced(with_all_replaced(succeed("document man").output, "\\-", "-"), "\n", " \n");
  const std::string bash = succeed("document bash").output;
  const std::string zsh = succeed("document zsh").output;
  static const std::regex flags{R"(\n  (?:-\w,)?(--[\w-]+))"};
  for (const auto& [name, help] : all_helps()) {
    const std::size_t blank = name.find(' ');
    const std::string subcommand = blank == std::string::npos ? "" : name.substr(blank + 1);
    const std::string choices = "\n    '" + subcommand + "') choices='";
    const std::string completed = " " + part_of(bash, choices, "'") + " ";
    EXPECT_EQ(completed, " " + part_of(zsh, choices, "'") + " ");
    // The page has no section for the flags of the program itself.
    const std::string page =
        subcommand.empty() ? "" : part_of(manual, "\n.SS " + subcommand + " \n", "\n.S");
    for (std::sregex_iterator flag{help.begin(), help.end(), flags}, end; flag != end; ++flag) {
      expect_parts(completed, {" " + flag->str(1) + " "});
      if (page.empty() || flag->str(1).starts_with("--help")) continue;
      expect_parts(page, {"\n.B " + flag->str(1) + " "});
    }
  }
}

}  // namespace
}  // namespace spillway::test
