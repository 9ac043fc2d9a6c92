// The last lines of a training.

#include "src/cli/train/training_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "um/bytes.h"
#include "um/machine/available_memory.h"

namespace spillway::cli {
namespace {

using std::chrono::milliseconds;

std::string printed(const TrainingSummary& summary, const std::string& profile_file = "") {
  TrainingReport report{JsonLines{"", /*goes_on=*/false}, {}, {.batch = 8}, {}, um::Bytes{1}};
  testing::internal::CaptureStderr();
  report.print(summary, profile_file);
  return testing::internal::GetCapturedStderr();
}

// Steps of 100 ms by the prediction, which took `median`.
TrainingSummary trained(std::uint64_t steps, milliseconds median, milliseconds slow) {
  return {.steps = steps,
          .steps_run = steps,
          .first_loss = 3.5536F,
          .last_loss = 0.01271F,
          .last_accuracy = 1,
          .median_step = median,
          .quick_step = median,
          .slow_step = slow,
          .predicted_step = milliseconds{100}};
}

TEST(TrainingReport, SaysWhatWasLearned) {
  TrainingSummary summary = trained(20, milliseconds{100}, milliseconds{100});
  EXPECT_EQ(printed(summary).find(
                "loss 3.554 -> 0.01271, accuracy 100.0 % (of the last batch; not tested)\n"),
            0U);
  summary.evaluation = Evaluation{.loss = 0.1, .accuracy = 0.992};
  EXPECT_EQ(printed(summary).find("loss 3.554 -> 0.01271, accuracy 100.0 % (test 99.2 %)\n"), 0U);
  summary.steps_run = 1;
  summary.last_accuracy.reset();
  EXPECT_EQ(printed(summary).find("loss 0.01271 (test 99.2 %)\n"), 0U);
  summary.steps_run = 0;
  EXPECT_EQ(printed(summary).find("0 steps, "), 0U);
}

TEST(TrainingReport, SaysThatACgroupHasOtherProcesses) {
  const std::string said = printed(trained(1, milliseconds{1}, milliseconds{1}));
  EXPECT_EQ(said.find("other processes and file pages included\n") != std::string::npos,
            um::peak_of_cgroup().has_value())
      << said;
}

// A wrong prediction is explained only where the steps tell why.
TEST(TrainingReport, ExplainsAPredictionThatIsWrong) {
  struct Explained {
    TrainingSummary summary;
    std::string profile_file;
    std::string ending;
  };
  const milliseconds wrong{200};
  for (const auto& [summary, profile_file, ending] : std::vector<Explained>{
           {trained(20, milliseconds{110}, milliseconds{300}), "", "(-9.1 %)\n"},
           {trained(10, wrong, wrong), "", "(-50.0 %): more than 15 % off\n"},
           {trained(100, milliseconds{9}, milliseconds{9}), "",
            "(+1011.1 %): more than 15 % off\n"},
           {trained(20, wrong, milliseconds{270}), "p.json",
            "(-50.0 %): more than 15 % off; steps took from 0.2000 to 0.2700 s: perhaps this "
            "machine "
            "was busy\n"},
           {trained(20, wrong, wrong), "p.json",
            "(-50.0 %): more than 15 % off, in steady steps: perhaps the times in p.json are of "
            "another machine or step\n"},
           {trained(20, wrong, wrong), "",
            "(-50.0 %): more than 15 % off, in steady steps: tasks took other times when they were "
            "measured before\n"}}) {
    const std::string said = printed(summary, profile_file);
    EXPECT_TRUE(said.ends_with(ending)) << said;
  }
}

}  // namespace
}  // namespace spillway::cli
