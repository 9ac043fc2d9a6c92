// Pages of `spillway report` for bench files of earlier versions.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/expect_text.h"
#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

using nlohmann::json;

constexpr const char* kPages = "src/cli/golden/report_pages.txt";

// Returns what the page draws and says.
json figures_in(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const std::size_t from = page.find(begin);
  if (from == std::string::npos) return "no data in the page";
  const std::size_t data = from + begin.size();
  return json::parse(page.substr(data, page.find("</script>", data) - data), nullptr, false);
}

TEST(ReportPages, OfBenchFilesHaveTheFiguresTheyHad) {
  const std::string folder = SPILLWAY_GOLDEN_FILES "/bench_files/";
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator{folder}) {
    names.insert(file.path().stem());
  }
  EXPECT_GE(names.size(), 10U);
  for (const std::string& name : names) {
    json figures = figures_in(succeed({"report", folder + name + ".json", "-o -"}).output);
    ASSERT_TRUE(figures.is_object()) << figures;
    figures["version"] = "VERSION";
    std::string text;
    for (const auto& [key, part] : figures.items()) text += key + ": " + part.dump() + "\n";
    expect_text(kPages, name, with_all_replaced(text, folder, "FOLDER/"));
  }
  expect_only_sections(kPages, names);
}

}  // namespace
}  // namespace spillway::test
