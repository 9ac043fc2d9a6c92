// The JSON output that scripts rely on. golden/json_shapes.txt has its names and types.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway::test {
namespace {

using nlohmann::json;

void expect_prediction_alone(const std::string& path) {
  const json trace = json::parse(std::ifstream{path});
  EXPECT_GT(trace.at("traceEvents").size(), 29U) << "LeNet has 29 tasks";
  const std::string text = trace.dump();
  expect_parts(text, {"predicted"});
  EXPECT_EQ(text.find("measured"), std::string::npos);
}

TEST(TrainJson, IsALineAStepAndASummary) {
  const Outcome outcome =
      succeed("train --net lenet --batch 8 --steps 5 --budget min+20% --json -");
  const std::vector<json> lines = json_lines(outcome);

  ASSERT_EQ(lines.size(), 6U);
  const json& summary = lines.back().at("summary");
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(lines[i].at("step"), i + 1);
    EXPECT_GT(lines[i].at("near_peak_bytes"), 0);
    EXPECT_LE(lines[i].at("near_peak_bytes"), summary.at("budget_bytes"));
  }
  const std::string hash = summary.value("weights_sha256", "");
  EXPECT_EQ(hash.size(), 64U);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos) << hash;
  EXPECT_EQ(summary.at("steps"), 5);
  EXPECT_LE(summary.at("near_peak_bytes"), summary.at("budget_bytes"));
  EXPECT_GE(summary.at("budget_bytes"), summary.at("min_budget_bytes"));
  EXPECT_EQ(summary.at("algorithms").is_object(), true);
  EXPECT_NEAR(summary.at("prediction_error").get<double>(),
              summary.at("predicted_step_seconds").get<double>() /
                      summary.at("median_step_seconds").get<double>() -
                  1,
              1e-9);
}

// The summary equals the sum of all steps' lines.
TEST(TrainJson, NamesAFolderThatIsNoUtf8) {
  const TemporaryFolder folder;
  const std::string odd = folder.file("f\xFFr");
  std::filesystem::create_directory(odd);
  const Arguments training = small_training({"--budget min --json - --far", "file:" + odd});
  EXPECT_TRUE(summary_of(training).at("far").is_string());
  const json said = json::parse(succeed({training, "--dry-run"}).output);
  EXPECT_TRUE(said.at("dry_run").at("far").get<std::string>().ends_with("f\uFFFDr"));
}

TEST(TrainJson, SummaryAddsUpTheSteps) {
  const Outcome outcome =
      succeed("train --net lenet --batch 8 --steps 4 --budget min --planner on-demand --json -");
  const std::vector<json> lines = json_lines(outcome);
  ASSERT_EQ(lines.size(), 5U);
  const json& summary = lines.back().at("summary");

  for (const char* name : {"bytes_prefetched", "bytes_offloaded", "faults", "evictions"}) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < 4; ++i) total += lines[i].at(name).get<std::uint64_t>();
    EXPECT_EQ(summary.at(name), total) << name;
  }
  EXPECT_GT(summary.at("faults"), 0);
  EXPECT_GT(summary.at("predicted_step_seconds"), 0);
}

// LeNet's convolutions have one algorithm.
TEST(TrainJson, PredictsNothingWhereNothingIsMeasured) {
  const Outcome outcome =
      succeed("train --net lenet --batch 8 --steps 2 --memory resident --json -");
  const json summary = json_lines(outcome).back().at("summary");
  EXPECT_EQ(summary.at("predicted_step_seconds"), nullptr);
  EXPECT_EQ(summary.at("prediction_error"), nullptr);
  EXPECT_EQ(summary.at("profile"), "not measured");
  EXPECT_EQ(outcome.errors.find("measuring"), std::string::npos) << outcome.errors;
  expect_parts(outcome.errors, {"no step was predicted"});
}

TEST(TrainJson, SaysWhatEachEpochEndedWith) {
  const TemporaryFolder folder;
  const Outcome outcome = succeed(
      {"train --net lenet --batch 512 --image-size 14 --epochs 2 --json", folder.file("lines")});
  EXPECT_EQ(outcome.output, "");
  std::ifstream file{folder.file("lines")};
  std::vector<json> evaluations;
  for (std::string line; std::getline(file, line);) {
    const json object = json::parse(line);
    if (object.contains("evaluation")) evaluations.push_back(object.at("evaluation"));
  }

  ASSERT_EQ(evaluations.size(), 2U);
  EXPECT_EQ(evaluations[1].at("epoch"), 2);
  for (const json& evaluation : evaluations) {
    EXPECT_LE(evaluation.at("test_accuracy"), 1.0);
  }
}

TEST(TrainTrace, ShowsThePredictedAndTheMeasuredStep) {
  const TemporaryFolder folder;
  succeed({"train --net lenet --batch 8 --steps 2 --budget min --timeline", folder.file("trace")});
  const json trace = json::parse(std::ifstream{folder.file("trace")});

  EXPECT_GT(trace.at("traceEvents").size(), 2 * 29U) << "LeNet has 29 tasks, shown twice";
  expect_parts(trace.dump(), {"predicted", "measured, last step"});
}

TEST(TrainTrace, OfNoStepShowsThePredictionAlone) {
  const TemporaryFolder folder;
  succeed({"train --net lenet --batch 8 --steps 0 --budget min --timeline", folder.file("trace")});
  expect_prediction_alone(folder.file("trace"));
}

// Measures and plans nothing: an invalid profile is not opened.
TEST(Train, SaysAtOnceThatNothingIsLeft) {
  const TemporaryFolder folder;
  const Arguments training = {"train --net lenet --batch 8 --steps 2 --json - --checkpoint",
                              folder.file("checkpoint")};
  const json whole = summary_of(training);

  const Outcome again = run_spillway({training, "--resume --profile /nowhere"});

  EXPECT_EQ(again.errors, "nothing is left to train: the checkpoint in " +
                              folder.file("checkpoint") +
                              " is of step 2; give more --steps or --epochs to go on\n");
  const json summary = summary_of(again);
  EXPECT_EQ(summary.value("steps_run", 1), 0);
  EXPECT_EQ(summary.value("steps", 0), 2);
  EXPECT_EQ(summary.value("weights_sha256", "none"), whole.value("weights_sha256", "nothing"));
}

TEST(Train, SaysWhatItsLastEvaluationWasWhereNothingIsLeft) {
  const TemporaryFolder folder;
  const Arguments training = {
      "train --net lenet --batch 8 --steps 2 --eval-every 2 --json - --checkpoint",
      folder.file("checkpoint")};
  const json whole = summary_of(training);
  const json again = summary_of({training, "--resume"});
  ASSERT_TRUE(whole.contains("test_top5"));
  for (const char* name : {"test_loss", "test_accuracy", "test_top5"}) {
    EXPECT_EQ(again.value(name, json{}), whole.at(name)) << name;
  }
}

TEST(PlanJson, HasTheFiguresOfThePlan) {
  const json plan = json_of("plan --net vgg16 --batch 64 --machine v100 --budget min+20% --json -");

  EXPECT_EQ(plan.at("feasible"), true);
  EXPECT_EQ(plan.at("verified"), true);
  EXPECT_EQ(plan.at("planner"), "joint");
  const json& bounds = plan.at("bounds");
  EXPECT_GT(bounds.at("mixed"), 0.0);
  EXPECT_LE(bounds.at("mixed"), plan.at("makespan_seconds"));
  EXPECT_LE(bounds.at("mixed"), bounds.at("offload"));
  EXPECT_LE(bounds.at("beaumont"), bounds.at("offload"));
  EXPECT_LE(plan.at("peak_bytes"), plan.at("budget_bytes"));
  EXPECT_GE(plan.at("makespan_seconds"), plan.at("arithmetic_seconds"));
  EXPECT_GE(plan.at("arithmetic_seconds"), plan.at("compute_seconds"));
}

TEST(PlanJson, IsOfThePrecisionThatTheMachineComputesIn) {
  const auto plan_in = [](const std::string& precision) {
    return json_of(
        {"plan --net resnet50 --batch 256 --machine h200 --budget 100% --json - "
         "--planner resident --precision",
         precision});
  };
  const json fp32 = plan_in("fp32");
  const json tf32 = plan_in("tf32");
  const json bf16 = plan_in("bf16");
  EXPECT_EQ(fp32.at("profile"), "model h200");
  EXPECT_EQ(fp32.at("precision"), "fp32");
  EXPECT_EQ(bf16.at("profile"), "model h200, bf16");
  EXPECT_EQ(bf16.at("precision"), "bf16");
  EXPECT_LT(tf32.at("compute_seconds"), fp32.at("compute_seconds"));
  EXPECT_LT(bf16.at("compute_seconds"), tf32.at("compute_seconds"));
  // Most of the need is activations, which are half as large.
  EXPECT_LT(bf16.at("resident_bytes").get<double>(),
            0.56 * tf32.at("resident_bytes").get<double>());
}

TEST(PlanJson, HasWhatOocPaleoSaysWhereAskedFor) {
  const Arguments command = "plan --net lenet --batch 64 --planner vdnn-all --budget 100% --json -";
  EXPECT_FALSE(json_of(command).contains("paleo_seconds"));
  const json plan = json_of({command, "--model paleo"});
  EXPECT_GE(plan.at("paleo_seconds"), plan.at("compute_seconds"));
  EXPECT_EQ(plan.at("paleo_strategy"), "vdnn-like");
}

TEST(Version, NamesTheCommitAndTheLibraries) {
  const Outcome outcome = succeed("--version");
  expect_parts(outcome.output, {"spillway 0.", "commit ", "oneDNN ", "CUDA"});
}

}  // namespace
}  // namespace spillway::test
