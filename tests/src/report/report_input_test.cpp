#include "src/report/report_input.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "src/report/report_page.h"
#include "src/report/training_log.h"
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
}

TEST_F(ReportInputFiles, CountOnceHoweverOftenTheyAreGiven) {
  write("a.json", bench_);
  EXPECT_EQ(read({folder(), folder_.file("a.json"), folder_.file("a.json")}).files.size(), 1U);
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

TrainingLog read(const std::string& text) { return read_training_log(text, "run.json"); }

ReportInputs inputs_of(const std::string& name, const std::string& text) {
  return {.files = {{.name = name, .kind = ReportInputKind::kTraining, .training = read(text)}},
          .left_out = {}};
}

TEST(TrainingLog, IsToldByItsFirstLine) {
  EXPECT_TRUE(is_training_log(step_line(1, 2.5)));
  EXPECT_TRUE(is_training_log(evaluation_line(1, 0.5, 0.9)));
  EXPECT_TRUE(is_training_log("{\"summary\": {}}\n"));
  for (const char* other : {"", "{", "[]", "{\"step\": 1}", "{\"format\": \"spillway-bench\"}",
                            "{\"summary\": 3}", "step 1 loss 3"}) {
    EXPECT_FALSE(is_training_log(other)) << other;
  }
}

TEST(TrainingLog, HasTheStepsAndTheirEvaluations) {
  const TrainingLog log = read(step_line(1, 2.5) + step_line(2, 2.25) +
                               evaluation_line(2, 2.5, 0.125) + summary_line());
  ASSERT_EQ(log.steps.size(), 2U);
  EXPECT_EQ(log.steps[1].step, 2U);
  EXPECT_EQ(log.steps[1].figures[0], 2.25);  // the loss
  ASSERT_EQ(log.evaluations.size(), 1U);
  EXPECT_EQ(log.evaluations[0].figures[1], 0.125);  // the accuracy
  EXPECT_TRUE(std::isnan(log.evaluations[0].figures[3]));
  ASSERT_TRUE(log.subject);
  EXPECT_EQ(log.subject->network, "lenet");
  EXPECT_EQ(log.subject->batch, 8U);
  EXPECT_FALSE(log.best_step);
}

// It was killed, or still writes.
TEST(TrainingLog, MayEndInTheMiddleOfALine) {
  const TrainingLog log = read(step_line(1, 2.5) + R"({"step": 2, "lo)");
  EXPECT_EQ(log.steps.size(), 1U);
  EXPECT_FALSE(log.subject);
}

// The line that the first of two was killed in has the other's first one behind it.
TEST(TrainingLog, LeavesOutALineThatWasCutBetweenTwoTrainings) {
  const TrainingLog log = read(step_line(1, 3) + "{\"step\": 2, \"los" + step_line(2, 2.5));
  ASSERT_EQ(log.steps.size(), 2U);
  EXPECT_EQ(log.steps[1].figures[0], 2.5);
}

// From the checkpoint of step 1 on, after which an evaluation of step 2 is of no training any more.
TEST(TrainingLog, GoesOnWhereATrainingWentOn) {
  const TrainingLog log =
      read(step_line(1, 3) + step_line(2, 2) + evaluation_line(2, 1, 0.5) + step_line(2, 2.5) +
           step_line(3, 1.5) + "{\"early_stop\": {\"step\": 3, \"best_step\": 2}}\n");
  ASSERT_EQ(log.steps.size(), 3U);
  EXPECT_EQ(log.steps[1].figures[0], 2.5);
  EXPECT_TRUE(log.evaluations.empty());
  EXPECT_EQ(log.best_step, 2U);
}

TEST(TrainingCurves, HaveAPointAStep) {
  const json data = training_data(read(step_line(1, 3) + step_line(2, 2.5)));
  EXPECT_EQ(data.at("curves").at("loss"), json::parse("[[1, 3.0, 3.0, 3.0], [2, 2.5, 2.5, 2.5]]"));
  EXPECT_EQ(data.at("curves").at("learning_rate").size(), 2U);
  EXPECT_FALSE(data.at("curves").contains("stalled_seconds"));  // which the lines do not tell
  EXPECT_EQ(data.at("last_step"), 2);
}

// 1500 steps are 500 points of three: the last one's step, and mean, least and most of 0, 1, 2.
TEST(TrainingCurves, OfManyStepsHaveTheirMeanAndRange) {
  std::string text;
  for (int step = 1; step <= 1500; ++step) text += step_line(step, (step - 1) % 3);
  const json loss = training_data(read(text)).at("curves").at("loss");
  ASSERT_EQ(loss.size(), 500U);
  EXPECT_EQ(loss[0], json::parse("[3, 1.0, 0.0, 2.0]"));
  EXPECT_EQ(loss[499], json::parse("[1500, 1.0, 0.0, 2.0]"));
}

// JSON has no NaN; it is written as null.
TEST(TrainingCurves, LeaveOutWhatIsNoNumber) {
  const json data =
      training_data(read(step_line(1, 3) + "{\"step\": 2, \"epoch\": 1, \"loss\": null}\n"));
  EXPECT_EQ(data.at("curves").at("loss").size(), 1U);
  EXPECT_EQ(data.at("said").at(0), "A training: 2 steps; the loss of step 2 is not a number.");
}

TEST(TrainingCurves, SayWhatCameOut) {
  const json data = training_data(
      read(step_line(1, 3) + evaluation_line(1, 2.5, 0.5) + step_line(2, 2.5) +
           evaluation_line(2, 2.4, 0.75) + step_line(3, 2.25) + evaluation_line(3, 2.3, 0.625) +
           "{\"early_stop\": {\"step\": 3, \"best_step\": 2}}\n" + summary_line()));
  EXPECT_EQ(
      data.at("said"),
      (json{"lenet at batch 8 on synthetic images: 3 steps, loss 3 to 2.25.",
            "The best evaluation is that of step 2, epoch 1: loss 2.4000, accuracy 75.00 %.",
            "It ended early: no later evaluation was better than that of step 2.",
            "Near memory was at most 977 KiB.", "Steps waited for their data 20 % of the time."}));
}

// One of two steps had a fault; 3 MiB are beyond a budget that was made smaller later.
TEST(TrainingCurves, SayWhatMemoryTook) {
  const auto said = [](int faults, int budget) {
    std::string text;
    for (int step = 1; step <= 2; ++step) {
      text += json{{"step", step},
                   {"epoch", 1},
                   {"loss", 2.0},
                   {"near_peak_bytes", step == 1 ? 3 << 20 : 1 << 20},
                   {"bytes_prefetched", step << 20},
                   {"bytes_offloaded", 1 << 20},
                   {"faults", step == 1 ? faults : 0}}
                  .dump() +
              "\n";
    }
    text +=
        json{{"summary", {{"budget_bytes", budget << 20}, {"resident_bytes", 8 << 20}}}}.dump() +
        "\n";
    return training_data(read(text)).at("said").at(1).get<std::string>();
  };
  EXPECT_EQ(said(0, 4),
            "Near memory was at most 3.00 MiB of a budget of 4.00 MiB (8.00 MiB with all near); a "
            "step moved 1.50 MiB in and 1.00 MiB out on average, without page faults.");
  EXPECT_EQ(said(7, 2),
            "Near memory was at most 3.00 MiB (8.00 MiB with all near); a step moved 1.50 MiB in "
            "and 1.00 MiB out on average, page faults in all: 7.");
}

TEST(TrainingCurves, SayThatTheSummaryIsMissing) {
  const json said = training_data(read(step_line(1, 3))).at("said");
  EXPECT_EQ(said.back(),
            "The file has no summary: the training was still running, or was ended before its last "
            "step.");
}

TEST(StepTable, HasALineAStepAndEmptyCellsForWhatIsNotTold) {
  const std::string table = step_table(inputs_of(
      "a, b.json", step_line(1, 2.5) + step_line(2, 0.5) + evaluation_line(2, 0.25, 0.75)));
  EXPECT_EQ(table,
            "training,step,epoch,loss,accuracy,learning_rate,seconds,data_wait_seconds,"
            "stalled_seconds,near_peak_bytes,bytes_prefetched,bytes_offloaded,faults,test_loss,"
            "test_accuracy,test_top5,perplexity\n"
            "\"a, b.json\",1,1,2.5,0.5,0.01,0.8,0.2,,1000000,,,,,,,\n"
            "\"a, b.json\",2,1,0.5,0.5,0.01,0.8,0.2,,1000000,,,,0.25,0.75,,\n");
}

}  // namespace
}  // namespace spillway::test
