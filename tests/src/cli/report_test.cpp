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
  // Expects an error, and an old report to stay.
  void expect_refused_and_old_kept(const std::vector<std::string>& words) const {
    write("report.html", "old");
    expect_refused(1, {"report", input_, "-o", page_}, words);
    EXPECT_EQ(text_of("report.html"), "old");
    EXPECT_FALSE(fs::exists(page_ + ".partial"));
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

TEST_F(Report, OfBadFilesLeavesTheOldOne) {
  fs::remove(folder_.file("in/train.json"));
  write("in/bad.json", "{\"format\"");
  expect_refused_and_old_kept({"none of the .json files can be shown", "bad.json", "not JSON"});
  write("in/bad.json", R"({"format": "spillway-bench", "version": 7})");
  expect_refused_and_old_kept({"bad.json", "version is 7"});
  write("in/bad.json", R"({"traceEvents": 1})");
  expect_refused_and_old_kept({"bad.json", "traceEvents is no array"});
  fs::remove_all(input_);
  expect_refused_and_old_kept({"cannot read", "No such file"});
  fs::create_directory(input_);
  expect_refused_and_old_kept({"there is no .json file in", "spillway bench"});
}

TEST_F(Report, OfABadFileThatIsNamedIsAnError) {
  write("in/bad.json", "{\"format\"");
  expect_refused(
      1, {"report", folder_.file("in/train.json"), folder_.file("in/bad.json"), "-o", page_},
      {"bad.json", "not JSON"});
  EXPECT_FALSE(fs::exists(page_));
}

TEST_F(Report, WantsAPlaceItCanWrite) {
  expect_refused(1, {"report", input_, "-o", folder_.file("nowhere/x.html")}, {"cannot write"});
  expect_refused(1, {"report", input_, "-o", input_}, {"cannot write", "directory"});
  expect_refused(1, {"report", input_, "-o /dev/null"}, {"/dev/null is no regular file"});
  const std::string file = folder_.file("in/train.json");
  expect_refused(1, {"report", file, "-o", file}, {"would replace", "which it reads"});
  EXPECT_NE(text_of("in/train.json"), "");
  expect_refused(1, {"report", input_, "-o", file}, {"no JSON", file});
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

TEST_F(Report, HasNoTableOfStepsWithoutATraining) {
  expect_refused(1, {"report", input_, "--csv -"}, {"spillway train --json FILE"});
  const std::string file = folder_.file("in/train.json");
  expect_refused(1, {"report", file, "--csv", file}, {"would replace", "--csv another name"});
  expect_refused(kBadUsage, {"report", input_, "--csv - -o -"}, {"standard output"});
}

TEST_F(Report, WantsSomethingToRead) {
  const Outcome outcome = run_spillway("report");
  EXPECT_EQ(outcome.exit_code, 2);
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
