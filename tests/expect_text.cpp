#include "tests/expect_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

namespace spillway::test {
namespace {

const std::string kMark = "=== ";
constexpr std::ptrdiff_t kShown = 8;         // lines of each text
constexpr std::size_t kLongest = 300;        // of what is shown of a line
constexpr std::size_t kBeforeThePlace = 60;  // in a longer line

using Sections = std::map<std::string, std::string>;

std::filesystem::path golden_file(const std::string& path) {
  return std::filesystem::path{SPILLWAY_TESTS_FOLDER} / path;
}

// Returns texts by name. What stands before the first mark has an empty name.
Sections sections_of(std::istream&& file) {
  Sections sections;
  std::string* text = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kMark)) {
      text = &sections[line.substr(kMark.size())];
      continue;
    }
    if (text == nullptr) text = &sections[""];
    *text += line + "\n";
  }
  return sections;
}

void write(const std::filesystem::path& file, const Sections& sections) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream written{file, std::ios::binary};
  for (const auto& [name, text] : sections) written << kMark << name << '\n' << text;
  if (!written.flush()) ADD_FAILURE() << "cannot write " << file;
}

bool is_update() {
  const char* const update = std::getenv("SPILLWAY_UPDATE");
  return update != nullptr && std::string_view{update} == "1";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream rest{text};
  for (std::string line; std::getline(rest, line);) lines.push_back(line);
  return lines;
}

// Shows both texts from their first different line on, and long lines around the first different
// place of that one.
std::string difference(const std::string& expected, const std::string& actual) {
  const std::vector<std::string> before = lines_of(expected);
  const std::vector<std::string> now = lines_of(actual);
  const auto [old_end, new_end] = std::ranges::mismatch(before, now);
  std::size_t skipped = 0;
  if (old_end != before.end() && new_end != now.end()) {
    const auto place = std::ranges::mismatch(*old_end, *new_end).in1 - old_end->begin();
    skipped = std::max(static_cast<std::size_t>(place), kBeforeThePlace) - kBeforeThePlace;
  }
  std::ostringstream told;
  told << "from line " << old_end - before.begin() + 1 << " on\n";
  const auto show = [&told, &skipped](const char* mark, auto line, auto end) {
    end = std::min(end, line + std::min(kShown, end - line));
    for (std::size_t from = skipped; line != end; ++line, from = 0) {
      const bool is_long = line->size() > kLongest;
      told << mark << (is_long ? line->substr(from, kLongest) + " ..." : *line) << '\n';
    }
  };
  show("- ", old_end, before.end());
  show("+ ", new_end, now.end());
  return told.str();
}

}  // namespace

void expect_text(const std::string& path, const std::string& section, const std::string& actual) {
  ASSERT_TRUE(actual.ends_with('\n')) << path << ", " << section << ": no newline ends " << actual;
  ASSERT_EQ(("\n" + actual).find("\n" + kMark), std::string::npos)
      << path << ", " << section << ": a line begins a section in " << actual;
  const std::filesystem::path file = golden_file(path);
  Sections sections = golden_sections(path);
  const auto expected = sections.find(section);
  if (expected != sections.end() && expected->second == actual) return;
  if (is_update()) {
    sections[section] = actual;
    write(file, sections);
    return;
  }
  ADD_FAILURE() << path << ", " << section
                << (expected != sections.end() ? " differs " : " is missing; it differs ")
                << difference(expected != sections.end() ? expected->second : "", actual)
                << "SPILLWAY_UPDATE=1 in the environment of this test writes the section anew.";
}

Sections golden_sections(const std::string& path) {
  return sections_of(std::ifstream{golden_file(path), std::ios::binary});
}

void expect_only_sections(const std::string& path, const std::set<std::string>& sections) {
  const std::filesystem::path file = golden_file(path);
  Sections left = golden_sections(path);
  const auto stale = [&sections](const auto& each) { return !sections.contains(each.first); };
  if (is_update()) {
    if (std::erase_if(left, stale) > 0) write(file, left);
    return;
  }
  for (const auto& [name, text] : left) {
    EXPECT_TRUE(sections.contains(name))
        << path << ": no test asks for the section \"" << name
        << "\"; delete it, or run this test with SPILLWAY_UPDATE=1 in its environment";
  }
}

std::string with_all_replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace spillway::test
