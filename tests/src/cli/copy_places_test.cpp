// Where the copy mode has its blocks, as `spillway plan` and `train` say.
#include <gtest/gtest.h>

#include <string>

#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

using nlohmann::json;

Outcome plan_lenet(const Program::Arguments& more) {
  return run_spillway(
      joined({"plan", "--net", "lenet", "--batch", "64", "--machine", "v100"}, more));
}

TEST(CopyPlaces, AreFixedWhereEverythingIsNear) {
  const Outcome outcome = plan_lenet({"--memory", "copy", "--budget", "100%", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const json placement = json_lines(outcome).front().at("placement");
  EXPECT_EQ(placement.at("fits"), true);
  EXPECT_GT(placement.at("extent_bytes"), 0);
  EXPECT_LE(placement.at("extent_bytes"), placement.at("arena_bytes"));
}

TEST(CopyPlaces, AreInTheTableToo) {
  const Outcome outcome = plan_lenet({"--memory", "copy", "--budget", "100%"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_NE(outcome.output.find("arena            fixed places in "), std::string::npos)
      << outcome.output;
}

TEST(CopyPlaces, AreNoMatterOfUnifiedMemory) {
  const Outcome outcome = plan_lenet({"--budget", "100%", "--json", "-"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_FALSE(json_lines(outcome).front().contains("placement"));
}

TEST(CopyPlaces, OfSubBatchesAreThoseOfTheLargest) {
  const Outcome whole = plan_lenet({"--memory", "copy", "--json", "-"});
  const Outcome parts = plan_lenet({"--memory", "copy", "--sub-batch", "16", "--json", "-"});
  ASSERT_EQ(parts.exit_code, 0) << parts.errors;
  EXPECT_LT(json_lines(parts).front().at("placement").at("extent_bytes"),
            json_lines(whole).front().at("placement").at("extent_bytes"));
}

TEST(CopyPlaces, AreInATrainingsSummary) {
  const json summary =
      summary_of(run_spillway({"train", "--net", "lenet", "--batch", "8", "--steps", "1",
                               "--memory", "copy", "--budget", "100%", "--json", "-"}));
  ASSERT_TRUE(summary.contains("placement")) << summary;
  const json& placement = summary.at("placement");
  EXPECT_EQ(placement.at("fits"), placement.at("extent_bytes") <= placement.at("arena_bytes"));
}

}  // namespace
}  // namespace spillway::test
