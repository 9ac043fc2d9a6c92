#include "src/report/training_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "src/report/report_page.h"
#include "tests/refusal.h"
#include "tests/src/report/sample_files.h"

namespace spillway::test {
namespace {

using nlohmann::json;

TrainingLog read(const std::string& text) { return read_training_log(text, "run.json"); }

std::string complaint_about(const std::string& text) {
  return refusal([&] { return read(text); });
}

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

TEST(TrainingLog, NamesTheLineOfWhatIsDamaged) {
  EXPECT_EQ(complaint_about(step_line(1, 2) + "{\n" + step_line(2, 1)),
            "run.json: line 2: not JSON, at byte 2");
  EXPECT_EQ(complaint_about(step_line(1, 2) + "{\"step\": -1, \"epoch\": 1}\n"),
            "run.json: line 2: step is no whole number from 0 up");
  EXPECT_EQ(complaint_about("{\"step\": 1, \"epoch\": 1, \"loss\": \"low\"}\n"),
            "run.json: line 1: loss is no number");
  EXPECT_EQ(complaint_about(step_line(1, 2) + "{\"more\": 1}\n"),
            "run.json: line 2: is neither a step nor an evaluation nor a summary");
  EXPECT_EQ(complaint_about(step_line(1, 2) + "3\n"), "run.json: line 2: is no object");
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

TEST(StepTable, IsOfTrainings) {
  EXPECT_NE(refusal([] { return step_table({}); }).find("spillway train --json FILE"),
            std::string::npos);
}

}  // namespace
}  // namespace spillway::test
