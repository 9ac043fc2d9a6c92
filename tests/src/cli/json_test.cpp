// The machine-readable output, as scripts rely on it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/src/cli/program.h"
#include "tests/temporary_folder.h"

namespace spillway {
namespace {

using nlohmann::json;
using test::joined;
using test::Outcome;
using test::Program;
using test::run_spillway;
using test::TemporaryFolder;

void expect_numbers(const json& object, const std::vector<const char*>& names) {
  for (const char* name : names) {
    ASSERT_TRUE(object.contains(name)) << name << " is missing in " << object;
    EXPECT_TRUE(object.at(name).is_number()) << name << " in " << object;
    EXPECT_GE(object.at(name), 0) << name;
  }
}

void expect_strings(const json& object, const std::vector<const char*>& names) {
  for (const char* name : names) {
    ASSERT_TRUE(object.contains(name)) << name << " is missing in " << object;
    EXPECT_TRUE(object.at(name).is_string()) << name << " in " << object;
  }
}

void expect_prediction_alone(const std::string& path) {
  json trace;
  std::ifstream{path} >> trace;
  EXPECT_GT(trace.at("traceEvents").size(), 29U) << "LeNet has 29 tasks";
  const std::string text = trace.dump();
  EXPECT_NE(text.find("predicted"), std::string::npos);
  EXPECT_EQ(text.find("measured"), std::string::npos);
}

TEST(TrainJson, IsALineAStepAndASummary) {
  const Outcome outcome = run_spillway({"train", "--net", "lenet", "--batch", "8", "--steps", "5",
                                        "--budget", "min+20%", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const std::vector<json> lines = json_lines(outcome);

  ASSERT_EQ(lines.size(), 6U);
  const json& summary = lines.back().at("summary");
  for (std::size_t i = 0; i < 5; ++i) {
    expect_numbers(lines[i],
                   {"step", "epoch", "loss", "learning_rate", "seconds", "near_peak_bytes",
                    "bytes_prefetched", "bytes_offloaded", "faults", "evictions"});
    EXPECT_EQ(lines[i].at("step"), i + 1);
    EXPECT_GT(lines[i].at("near_peak_bytes"), 0);
    EXPECT_LE(lines[i].at("near_peak_bytes"), summary.at("budget_bytes"));
  }
  expect_numbers(summary,
                 {"steps", "steps_run", "median_step_seconds", "predicted_step_seconds",
                  "images_per_second", "budget_bytes", "min_budget_bytes", "resident_bytes",
                  "near_peak_bytes", "bytes_prefetched", "bytes_offloaded", "faults", "evictions",
                  "recomputed_tasks", "peak_resident_set_bytes", "parameters", "batch", "seed"});
  expect_strings(summary, {"network", "planner", "memory", "memory_description", "far", "device",
                           "backend", "data", "weights_sha256"});
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

// What the lines say of each step adds up to what the summary says of all.
TEST(TrainJson, SummaryAddsUpTheSteps) {
  const Outcome outcome =
      run_spillway({"train", "--net", "lenet", "--batch", "8", "--steps", "4", "--budget", "min",
                    "--planner", "on-demand", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
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

TEST(TrainJson, SaysWhatEachEpochEndedWith) {
  const TemporaryFolder folder;
  const Outcome outcome = run_spillway({"train", "--net", "lenet", "--batch", "512", "--image-size",
                                        "14", "--epochs", "2", "--json", folder.file("lines")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
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
    expect_numbers(evaluation, {"step", "test_loss", "test_accuracy"});
    EXPECT_LE(evaluation.at("test_accuracy"), 1.0);
  }
}

TEST(TrainTrace, ShowsThePredictedAndTheMeasuredStep) {
  const TemporaryFolder folder;
  const Outcome outcome = run_spillway({"train", "--net", "lenet", "--batch", "8", "--steps", "2",
                                        "--budget", "min", "--trace", folder.file("trace")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  json trace;
  std::ifstream{folder.file("trace")} >> trace;

  EXPECT_GT(trace.at("traceEvents").size(), 2 * 29U) << "LeNet has 29 tasks, shown twice";
  const std::string text = trace.dump();
  EXPECT_NE(text.find("predicted"), std::string::npos);
  EXPECT_NE(text.find("measured, last step"), std::string::npos);
}

TEST(TrainTrace, OfNoStepShowsThePredictionAlone) {
  const TemporaryFolder folder;
  const Outcome outcome = run_spillway({"train", "--net", "lenet", "--batch", "8", "--steps", "0",
                                        "--budget", "min", "--trace", folder.file("trace")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  expect_prediction_alone(folder.file("trace"));
}

TEST(TrainTrace, OfAFinishedTrainingShowsThePredictionAlone) {
  const TemporaryFolder folder;
  const Program::Arguments training{"train",
                                    "--net",
                                    "lenet",
                                    "--batch",
                                    "8",
                                    "--steps",
                                    "2",
                                    "--budget",
                                    "min",
                                    "--checkpoint",
                                    folder.file("checkpoint")};
  ASSERT_EQ(run_spillway(training).exit_code, 0);

  const Outcome again =
      run_spillway(joined(training, {"--resume", "--trace", folder.file("trace"), "--json", "-"}));

  EXPECT_EQ(summary_of(again).value("steps_run", 1), 0);
  EXPECT_EQ(summary_of(again).value("steps", 0), 2);
  expect_prediction_alone(folder.file("trace"));
}

TEST(PlanJson, HasTheFiguresOfThePlan) {
  const Outcome outcome = run_spillway({"plan", "--net", "vgg16", "--batch", "64", "--machine",
                                        "v100", "--budget", "min+20%", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const std::vector<json> lines = json_lines(outcome);
  ASSERT_EQ(lines.size(), 1U);
  const json& plan = lines.front();

  EXPECT_EQ(plan.at("feasible"), true);
  EXPECT_EQ(plan.at("verified"), true);
  EXPECT_EQ(plan.at("planner"), "joint");
  expect_numbers(plan, {"budget_bytes", "min_budget_bytes", "resident_bytes", "peak_bytes",
                        "compute_seconds", "makespan_seconds", "planning_seconds",
                        "offloaded_bytes", "prefetched_bytes", "recomputed_tasks"});
  const json& bounds = plan.at("bounds");
  EXPECT_GT(bounds.at("mixed"), 0.0);
  EXPECT_LE(bounds.at("mixed"), plan.at("makespan_seconds"));
  EXPECT_LE(bounds.at("mixed"), bounds.at("offload"));
  EXPECT_LE(bounds.at("beaumont"), bounds.at("offload"));
  EXPECT_LE(plan.at("peak_bytes"), plan.at("budget_bytes"));
  EXPECT_GE(plan.at("makespan_seconds"), plan.at("compute_seconds"));
}

TEST(PlanJson, HasWhatOocPaleoSaysWhereAskedFor) {
  std::vector<std::string> command{"plan",     "--net",    "lenet", "--batch", "64", "--planner",
                                   "vdnn-all", "--budget", "100%",  "--json",  "-"};
  const Outcome simulated = run_spillway(command);
  ASSERT_EQ(simulated.exit_code, 0) << simulated.errors;
  EXPECT_FALSE(json_lines(simulated).front().contains("paleo_seconds"));

  command.insert(command.end(), {"--model", "paleo"});
  const Outcome outcome = run_spillway(command);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const json plan = json_lines(outcome).front();
  EXPECT_GE(plan.at("paleo_seconds"), plan.at("compute_seconds"));
  EXPECT_EQ(plan.at("paleo_strategy"), "vdnn-like");
}

TEST(Version, NamesTheCommitAndTheLibraries) {
  const Outcome outcome = run_spillway({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* word : {"spillway 0.", "commit ", "oneDNN ", "CUDA"}) {
    EXPECT_NE(outcome.output.find(word), std::string::npos) << outcome.output;
  }
}

}  // namespace
}  // namespace spillway
