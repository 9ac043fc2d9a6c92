// Budgets that are none, or that nothing fits into.

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"

namespace spillway::test {
namespace {

using nlohmann::json;

const Arguments kPlan = "plan --net lenet --batch 8";

// The number before " bytes (".
std::string smallest_budget_in(const std::string& sentence) {
  const std::size_t end = sentence.find(" bytes (");
  if (end == std::string::npos) return {};
  return sentence.substr(sentence.rfind(' ', end - 1) + 1, end - sentence.rfind(' ', end - 1) - 1);
}

TEST(BadBudget, SaysWhatABudgetLooksLike) {
  for (const char* budget : {"0", "-5", "-1MiB", "12Gib", "x", "0%", "-3%", "min-5%", "min+x%",
                             "nan", "1e400", "99999999999999999999999999%", "min+1e99%"}) {
    const std::string quoted = "'" + std::string{budget} + "' is no budget";
    expect_refused(2, small_training({"--budget", budget}), {quoted, "512MiB", "40%", "min+20%"});
    expect_refused(2, {kPlan, "--budget", budget}, {quoted});
    expect_refused(2, {"profile --net lenet --batch 8 --budget", budget}, {quoted});
  }
}

TEST(BadBudget, TooSmallNamesTheTaskItsNeedAndABudgetThatWorks) {
  for (const char* budget : {"1", "1KiB", "500KiB", "1%"}) {
    const std::string sentence =
        expect_refused(1, small_training({"--budget", budget}),
                       {"too small", "task relu1.gradient needs", "smallest budget that works"});
    const std::string smallest = smallest_budget_in(sentence);

    const json summary = summary_of(small_training({"--budget", smallest, "--json -"}));

    EXPECT_EQ(summary.value("budget_bytes", 0U), std::stoull(smallest));
    EXPECT_LE(summary.value("near_peak_bytes", ~0U), std::stoull(smallest));
  }
}

TEST(BadBudget, OneByteLessThanTheSmallestIsTooSmall) {
  const std::string sentence = expect_refused(1, small_training("--budget 1KiB"), {});
  const auto smallest = std::stoull(smallest_budget_in(sentence));

  expect_refused(1, small_training({"--budget", std::to_string(smallest - 1)}), {"too small"});
}

TEST(BadBudget, OfAPlannerIsTheOneItNamed) {
  const Arguments resident = {kPlan, "--planner resident --budget"};
  const std::string sentence =
      expect_refused(1, {resident, "min"}, {"too small", "smallest budget that works"});

  succeed({resident, smallest_budget_in(sentence)});
}

// Of a plan that must fail.
json facts_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, kFailure);
  json facts = json::parse(outcome.output);
  EXPECT_EQ(facts.at("feasible"), false);
  return facts;
}

TEST(BadBudget, InfeasiblePlanSaysSoInJsonToo) {
  const json facts = facts_of(run_spillway({kPlan, "--budget 1KiB --json -"}));
  EXPECT_EQ(facts.at("budget_bytes"), 1024);
  EXPECT_GT(facts.at("min_budget_bytes"), 1024);
}

TEST(BadBudget, InJsonTheSmallestIsThatOfThePlanner) {
  const Outcome outcome = run_spillway({kPlan, "--planner resident --budget min --json -"});
  const json facts = facts_of(outcome);
  EXPECT_EQ(facts.at("planner"), "resident");
  EXPECT_EQ(std::to_string(facts.at("min_budget_bytes").get<std::uint64_t>()),
            smallest_budget_in(outcome.errors));
}

TEST(BadBudget, MoreThanTheMachineHasIsRefused) {
  expect_refused(1, small_training("--budget 100TiB"),
                 {"100 TiB", "free", "give a smaller --budget"});
}

TEST(BadBudget, MoreThanTheMachineHasIsNotTakenByDefault) {
  // conv1_2 reads and writes 64 channels of 224x224 floats: 26 MB an image, 1.3 TB for fifty
  // thousand.
  const Arguments huge = "train --net vgg16 --batch 50000 --image-size 224 --steps 1";
  expect_refused(1, huge, {"too small", "conv1_2.forward", "smallest budget that works"});
}

TEST(BadBudget, OfResidentModeIsTheWholeNeed) {
  for (const char* budget : {"1400KiB", "min", "95%"}) {
    expect_refused(1, small_training({"--memory resident --budget", budget}),
                   {"too small", "smallest budget that works"});
  }
  const Outcome peak_with_workspace =
      run_spillway(small_training("--memory resident --budget 200% --json -"));
  EXPECT_GT(summary_of(peak_with_workspace).value("budget_bytes", 0), 0);
}

}  // namespace
}  // namespace spillway::test
