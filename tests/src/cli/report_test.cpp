// `spillway report` as a program; tests/report tests the page itself.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/report/sample_files.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;

class Report : public testing::Test {
 protected:
  Report() {
    write("in/train.json",
          bench_file("train", json::array({training_row("joint", 40, 1.5)})).dump());
  }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path{folder_.file(name)}.parent_path());
    std::ofstream{folder_.file(name)} << text;
  }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream file{folder_.file(name)};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  TemporaryFolder folder_;
  std::string input_ = folder_.file("in");
  std::string page_ = folder_.file("report.html");
};

TEST_F(Report, IsOnePage) {
  const Outcome outcome = succeed({"report", input_, "-o", page_});
  EXPECT_EQ(outcome.output, page_ + "\n");
  EXPECT_EQ(outcome.errors, "");
  const std::string page = text_of("report.html");
  expect_parts(page, {"joint takes 1.50\\u00d7 the resident step"});
  const Outcome printed = run_spillway({"report", folder_.file("in/train.json"), "-o -"});
  EXPECT_TRUE(printed.output.starts_with("<!doctype html>"));
}

TEST_F(Report, SaysWhichMachinesItKeepsApartAndWhatItLeavesOut) {
  write("in/other.json", bench_file("link", json::array(), "another").dump());
  write("in/profile.json", R"({"format": "spillway-profile"})");
  const Outcome outcome = succeed({"report", input_, "-o", page_});
  expect_parts(outcome.errors, {"the measurements are of 2 machines",
                                "warning: left out: profile.json is neither a measurement"});
}

TEST_F(Report, OfAFolderWithABadFileShowsTheRest) {
  write("in/cut.json", "{\"format\"");
  const Outcome outcome = succeed({"report", input_, "-o", page_});
  EXPECT_TRUE(outcome.errors.starts_with("warning: left out: cut.json: not JSON, at byte "))
      << outcome.errors;
  const std::string page = text_of("report.html");
  expect_parts(page, {"joint takes 1.50\\u00d7 the resident step", "cut.json: not JSON"});
}

TEST_F(Report, OfATrainingHasItsCurvesAndATableOfItsSteps) {
  const std::string run = folder_.file("run.json");
  succeed({"train --net lenet --batch 8 --steps 3 --eval-every 2 --json", run});
  EXPECT_EQ(succeed({"report", run, "-o", page_}).errors, "");
  const std::string page = text_of("report.html");
  expect_parts(page, {"lenet at batch 8 on synthetic images of 10 classes: 3 steps, loss ",
                      "The best evaluation is that of step "});

  fs::remove(page_);
  const Outcome table = succeed({"report", run, "--csv -"});
  expect_parts(table.output, {"training,step,epoch,loss,", "\n" + run + ",3,1,"});
  EXPECT_EQ(std::ranges::count(table.output, '\n'), 4);
  EXPECT_FALSE(fs::exists(page_));
  const std::string csv = folder_.file("steps.csv");
  succeed({"report", run, "--csv", csv, "-o", page_});
  EXPECT_EQ(text_of("steps.csv"), table.output);
  EXPECT_TRUE(fs::exists(page_));
}

TEST_F(Report, FollowsALinkToThePage) {
  write("real.html", "old");
  fs::create_symlink("real.html", page_);
  succeed({"report", input_, "-o", page_});
  EXPECT_TRUE(fs::is_symlink(page_));
  EXPECT_TRUE(text_of("real.html").starts_with("<!doctype html>"));
}

}  // namespace
}  // namespace spillway::test
