#include "src/report/report_input.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tests/refusal.h"
#include "tests/src/report/sample_files.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

using Names = std::vector<std::string>;

// While it lives, this process may not read a folder: root, whom permissions do not stop, acts as
// another user, where it can.
class UnreadableFolder {
 public:
  explicit UnreadableFolder(std::string path) : path_{std::move(path)} {
    std::filesystem::permissions(path_, std::filesystem::perms::none);
    constexpr uid_t kNobody = 65534;
    is_other_user_ = geteuid() == 0 && seteuid(kNobody) == 0;
  }
  UnreadableFolder(const UnreadableFolder&) = delete;
  UnreadableFolder& operator=(const UnreadableFolder&) = delete;
  ~UnreadableFolder() {
    if (is_other_user_ && seteuid(0) != 0) ADD_FAILURE() << "root cannot be root again";
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }

  // False where nothing stops this user, or all above it is as closed to the other one.
  [[nodiscard]] bool is_unreadable() const {
    const std::filesystem::path above = std::filesystem::path{path_}.parent_path();
    return can_read(above) && !can_read(path_);
  }

 private:
  static bool can_read(const std::filesystem::path& folder) {
    std::error_code error;
    const std::filesystem::directory_iterator entries{folder, error};
    return !error;
  }

  std::string path_;
  bool is_other_user_ = false;
};

Names names_of(const ReportInputs& inputs) {
  Names names;
  for (const ReportInput& file : inputs.files) names.push_back(file.name);
  return names;
}

class ReportInputFiles : public testing::Test {
 protected:
  void write_text(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path{folder_.file(name)}.parent_path());
    std::ofstream{folder_.file(name)} << text;
  }
  void write(const std::string& name, const json& content) const {
    write_text(name, content.dump());
  }

  static ReportInputs read(const std::vector<std::string>& paths) {
    return read_report_inputs(paths);
  }
  static std::string complaint(const std::vector<std::string>& paths) {
    return refusal([&] { return read(paths); });
  }
  [[nodiscard]] std::string folder() const { return folder_.path().string(); }

  TemporaryFolder folder_;
  json bench_ = bench_file("link", json::array());
  json trace_ = {{"traceEvents", json::array()}};
  json plan_ = {{"format", "spillway-plan"}, {"version", 1},
                {"planner", "joint"},        {"residency", "planned"},
                {"budget_bytes", 9},         {"runs", json::array()},
                {"offloads", json::array()}, {"prefetches", json::array()}};
};

TEST_F(ReportInputFiles, AreAllJsonFilesOfAFolderByName) {
  write("z.json", bench_);
  write("steps/a.json", trace_);
  write("b.json", plan_);
  write("c.json", json{{"format", "spillway-profile"}});
  write("d.json", json::array({1}));
  write_text("notes.txt", "{");
  const ReportInputs inputs = read({folder()});
  EXPECT_EQ(names_of(inputs), (Names{"b.json", "steps/a.json", "z.json"}));
  EXPECT_EQ(inputs.files[0].kind, ReportInputKind::kPlan);
  EXPECT_EQ(inputs.files[1].kind, ReportInputKind::kTimeline);
  EXPECT_EQ(inputs.files[2].kind, ReportInputKind::kBench);
  EXPECT_EQ(inputs.left_out,
            (Names{"c.json is neither a measurement, nor a training, nor a plan, nor a timeline",
                   "d.json is neither a measurement, nor a training, nor a plan, nor a timeline"}));
}

TEST_F(ReportInputFiles, MayBeTheLinesOfATraining) {
  write_text("run.json", test::step_line(1, 2.5) + test::summary_line());
  write_text("more.jsonl", test::step_line(2, 2.25));
  const ReportInputs inputs = read({folder()});
  EXPECT_EQ(names_of(inputs), (Names{"more.jsonl", "run.json"}));
  EXPECT_EQ(inputs.files[0].kind, ReportInputKind::kTraining);
  EXPECT_EQ(inputs.files[1].training.steps.size(), 1U);
  write_text("run.json", test::step_line(1, 2.5) + "[]\n");
  EXPECT_EQ(complaint({folder_.file("run.json")}),
            folder_.file("run.json") + ": line 2: is no object");
}

TEST_F(ReportInputFiles, CountOnceHoweverOftenTheyAreGiven) {
  write("a.json", bench_);
  EXPECT_EQ(read({folder(), folder_.file("a.json"), folder_.file("a.json")}).files.size(), 1U);
}

TEST_F(ReportInputFiles, MustBeThere) {
  EXPECT_NE(complaint({folder()}).find("there is no .json file in " + folder()), std::string::npos);
  EXPECT_EQ(complaint({folder_.file("x.json")}),
            "cannot read " + folder_.file("x.json") + ": No such file or directory");
}

// Cut short, of a later version, damaged, gone: the other two are shown all the same.
TEST_F(ReportInputFiles, AreLeftOutWithTheReasonWhenTheyAreBad) {
  write("good.json", bench_);
  write("steps/good.json", trace_);
  write_text("steps/cut.json", "{");
  json later = bench_;
  later["version"] = 3;
  write("later.json", later);
  bench_.erase("machine");
  write("odd.json", bench_);
  std::filesystem::create_symlink("nowhere", folder_.file("gone.json"));
  const ReportInputs inputs = read({folder()});
  EXPECT_EQ(names_of(inputs), (Names{"good.json", "steps/good.json"}));
  EXPECT_EQ(inputs.left_out,
            (Names{"cannot read gone.json: No such file or directory",
                   "later.json: version is 3; this program reads version 2",
                   "odd.json: machine is missing", "steps/cut.json: not JSON, at byte 2"}));
}

// Each of the links leads to itself, so that neither has a place.
TEST_F(ReportInputFiles, AreEachLeftOutWhenTheyLeadNowhere) {
  write("good.json", bench_);
  for (const char* name : {"a.json", "b.json"}) {
    std::filesystem::create_symlink(name, folder_.file(name));
  }
  const std::string reason = ".json: Too many levels of symbolic links";
  EXPECT_EQ(read({folder()}).left_out, (Names{"cannot read a" + reason, "cannot read b" + reason}));
}

TEST_F(ReportInputFiles, OfAFolderThatCannotBeReadAreLeftOutWithTheReason) {
  write("good.json", bench_);
  write("steps/a/closed/hidden.json", bench_);
  write("steps/b/good.json", trace_);
  const UnreadableFolder closed{folder_.file("steps/a/closed")};
  if (!closed.is_unreadable()) GTEST_SKIP() << "this user may read every folder";

  const ReportInputs inputs = read({folder()});
  EXPECT_EQ(names_of(inputs), (Names{"good.json", "steps/b/good.json"}));
  EXPECT_EQ(inputs.left_out, (Names{"cannot read folder steps/a/closed: Permission denied"}));
  EXPECT_EQ(read({folder(), folder_.file("steps")}).left_out,
            (Names{"cannot read folder " + folder_.file("steps/a/closed") + ": Permission denied"}))
      << "once, though it is found twice";
  EXPECT_EQ(complaint({folder_.file("steps/a")}),
            "none of the .json files can be shown: cannot read folder closed: Permission denied; "
            "make a measurement with 'spillway bench'");
  EXPECT_EQ(complaint({folder_.file("steps/a/closed")}),
            "cannot read folder " + folder_.file("steps/a/closed") + ": Permission denied");
}

TEST_F(ReportInputFiles, EndTheReportWhenTheyAreBadAndNamed) {
  write("good.json", bench_);
  write_text("bad.json", "{");
  const std::string bad = folder_.file("bad.json");
  const std::string words = bad + ": not JSON, at byte 2";
  EXPECT_EQ(complaint({folder_.file("good.json"), bad}), words);
  EXPECT_EQ(complaint({folder(), bad}), words) << "though the folder has it too";
}

TEST_F(ReportInputFiles, MustNotAllBeBad) {
  write_text("a.json", "{");
  EXPECT_EQ(complaint({folder()}),
            "none of the .json files can be shown: a.json: not JSON, at byte 2; make a measurement "
            "with 'spillway bench'");
  write_text("b.json", "[");
  EXPECT_NE(complaint({folder()}).find("at byte 2; and 1 more; make"), std::string::npos);
}

TEST_F(ReportInputFiles, MustBeOfThisVersion) {
  bench_["version"] = 3;
  write("a.json", bench_);
  EXPECT_NE(complaint({folder_.file("a.json")}).find("version is 3; this program reads version 2"),
            std::string::npos);
}

TEST_F(ReportInputFiles, MayBeOfTheVersionBefore) {
  json row = link_row();
  json& seconds = row.at("seconds");
  seconds = {{"median", 2.0},    {"least", 1.0}, {"most", 3.0},
             {"deviation", 0.1}, {"runs", 5U},   {"settled", true}};
  json old = bench_file("link", json::array({row}));
  old["version"] = 1;
  write("a.json", old);
  const json content = read({folder_.file("a.json")}).files.front().content;
  EXPECT_EQ(content.at("version"), 2);
  EXPECT_EQ(content.at("/rows/0/seconds/min"_json_pointer), 1.0);
  EXPECT_EQ(content.at("/rows/0/seconds/max"_json_pointer), 3.0);
  EXPECT_FALSE(content.at("/rows/0/seconds"_json_pointer).contains("least"));
}

// Another version of this program may have other planners, and count other things.
TEST_F(ReportInputFiles, MayHaveNamesThatAreNotKnownAndLackWhatIsOnlyCounted) {
  json train = training_row("joint", 40, 2);
  for (const char* key : {"near_peak_bytes", "bytes_in", "bytes_out", "faults", "stalled_seconds",
                          "resident_seconds", "resident_is"}) {
    train.erase(key);
  }
  json copy = training_row("copy", 40, 2);
  copy["planner"] = "clairvoyant";
  json paging = paging_row("telepathy", 2, 9);
  paging["pattern"] = "zigzag";
  for (const char* key : {"faults", "evictions", "bytes_in", "bytes_out"}) paging.erase(key);
  json link = link_row();
  link["way"] = "carrier_pigeon";
  write("train.json", bench_file("train", json::array({train, copy})));
  write("paging.json", bench_file("paging", json::array({paging})));
  write("link.json", bench_file("link", json::array({link})));
  for (const char* name : {"train.json", "paging.json", "link.json"}) {
    EXPECT_EQ(complaint({folder_.file(name)}), "accepted");
  }
}

// The page divides by these numbers, and takes their logarithms.
TEST_F(ReportInputFiles, MustHaveWhatTheBenchesWrite) {
  struct Damage {
    const char* bench;
    json row;
    const char* member;
    json value;
    const char* place;
    const char* cause;
  };
  const json train = training_row("joint", 40, 2);
  const json link = link_row();
  for (const Damage& damage : std::vector<Damage>{
           {"train", train, "/rows/0/seconds/median", "2 s", "rows[0].seconds.median", "no number"},
           {"train", train, "/rows/0/failed", "too small", "rows[0].seconds", "beside 'failed'"},
           {"train", train, "/rows/0/resident_bytes", 0, "rows[0].resident_bytes", "zero"},
           {"train", train, "/rows/0/series", "x", "rows[0].series", "'x'"},
           {"train", train, "/rows/0/resident_is", "guessed", "rows[0].resident_is", "'guessed'"},
           {"link", link, "/rows/0/seconds/median", 0, "rows[0].seconds.median", "zero"},
           {"link", link, "/rows/0/seconds/min", 2e-6, "rows[0].seconds.min", "more than"},
           {"link", link, "/rows/0/bytes", 0, "rows[0].bytes", "zero"},
           {"paging", paging_row("faults", 2, 9), "/rows/0/ratio", 9, "", ""},
           {"racing", link, "/seconds", 1, "bench", "'racing'"},
           {"link", link, "/machine/id", 3, "machine.id", "no string"},
           {"link", link, "/options", 3, "options", "no object"},
           {"link", link, "/more", 3, "", ""},
           {"planners", failed_row("copy", 40), "/rows/0/more", "text", "", ""}}) {
    json content = bench_file(damage.bench, json::array({damage.row}));
    content[json::json_pointer{damage.member}] = damage.value;
    write("a.json", content);
    const std::string said = complaint({folder_.file("a.json")});
    if (*damage.cause == 0) {
      EXPECT_EQ(said, "accepted") << damage.member;
      continue;
    }
    EXPECT_NE(said.find(std::string{"a.json: "} + damage.place), std::string::npos) << said;
    EXPECT_NE(said.find(damage.cause), std::string::npos) << said;
  }
}

TEST_F(ReportInputFiles, MustBeWholePlans) {
  plan_["offloads"].push_back({{"size_bytes", "much"}});
  write("a.json", plan_);
  EXPECT_NE(complaint({folder()}).find("offloads[0].size_bytes is no whole number"),
            std::string::npos);
  plan_["offloads"] = 3;
  write("a.json", plan_);
  EXPECT_NE(complaint({folder()}).find("offloads is no array"), std::string::npos);
}

TEST_F(ReportInputFiles, MustBeSomethingToShow) {
  write("a.json", json{{"format", "spillway-profile"}, {"version", 1}});
  EXPECT_NE(complaint({folder_.file("a.json")}).find("neither a measurement of spillway bench"),
            std::string::npos);
  EXPECT_NE(complaint({folder()}).find("none of the .json files"), std::string::npos);
}

}  // namespace
}  // namespace spillway::test
