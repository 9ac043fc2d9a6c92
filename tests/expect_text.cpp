#include "tests/expect_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

namespace spillway::test {
namespace {

constexpr std::ptrdiff_t kShown = 8;  // lines of each text

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream rest{text};
  for (std::string line; std::getline(rest, line);) lines.push_back(line);
  return lines;
}

// Shows both texts from their first different line on.
std::string difference(const std::string& expected, const std::string& actual) {
  const std::vector<std::string> before = lines_of(expected);
  const std::vector<std::string> now = lines_of(actual);
  const auto [old_end, new_end] = std::ranges::mismatch(before, now);
  if (old_end == before.end() && new_end == now.end()) return "only the last newline differs\n";
  std::ostringstream told;
  told << "from line " << old_end - before.begin() + 1 << " on\n";
  const auto show = [&told](const char* mark, auto line, auto end) {
    end = std::min(end, line + std::min(kShown, end - line));
    for (; line != end; ++line) told << mark << *line << '\n';
  };
  show("- ", old_end, before.end());
  show("+ ", new_end, now.end());
  return told.str();
}

}  // namespace

void expect_text(const std::string& path, const std::string& actual) {
  const std::filesystem::path file = std::filesystem::path{SPILLWAY_TESTS_FOLDER} / path;
  std::ifstream stream{file, std::ios::binary};
  const std::string expected{std::istreambuf_iterator<char>{stream}, {}};
  if (stream.is_open() && expected == actual) return;
  const char* update = std::getenv("SPILLWAY_UPDATE");
  if (update != nullptr && std::string_view{update} == "1") {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream written{file, std::ios::binary};
    if (!(written << actual << std::flush)) ADD_FAILURE() << "cannot write " << file;
    return;
  }
  ADD_FAILURE() << path << (stream.is_open() ? " differs " : " is missing; it differs ")
                << difference(expected, actual)
                << "SPILLWAY_UPDATE=1 in the environment of this test writes the file anew.";
}

std::string with_all_replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace spillway::test
