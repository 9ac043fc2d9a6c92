// Where the copy mode has its blocks, as `spillway plan` and `train` say.
#include <gtest/gtest.h>

#include <string>

#include "tests/src/cli/program.h"

namespace spillway::test {
namespace {

using nlohmann::json;

const Arguments kPlanLenet = "plan --net lenet --batch 64 --machine v100";

json plan_lenet(const Arguments& more) { return json_of({kPlanLenet, more, "--json -"}); }

TEST(CopyPlaces, AreFixedWhereEverythingIsNear) {
  const json placement = plan_lenet("--memory copy --budget 100%").at("placement");
  EXPECT_EQ(placement.at("fits"), true);
  EXPECT_GT(placement.at("extent_bytes"), 0);
  EXPECT_LE(placement.at("extent_bytes"), placement.at("arena_bytes"));
}

TEST(CopyPlaces, AreInTheTableToo) {
  const Outcome outcome = succeed({kPlanLenet, "--memory copy --budget 100%"});
  expect_parts(outcome.output, {"arena            fixed places in "});
}

TEST(CopyPlaces, AreNoMatterOfUnifiedMemory) {
  EXPECT_FALSE(plan_lenet("--budget 100%").contains("placement"));
}

TEST(CopyPlaces, OfSubBatchesAreThoseOfTheLargest) {
  const json whole = plan_lenet("--memory copy");
  const json parts = plan_lenet("--memory copy --sub-batch 16");
  EXPECT_LT(parts.at("placement").at("extent_bytes"), whole.at("placement").at("extent_bytes"));
}

TEST(CopyPlaces, AreInATrainingsSummary) {
  const json summary =
      summary_of("train --net lenet --batch 8 --steps 1 --memory copy --budget 100% --json -");
  ASSERT_TRUE(summary.contains("placement")) << summary;
  const json& placement = summary.at("placement");
  EXPECT_EQ(placement.at("fits"), placement.at("extent_bytes") <= placement.at("arena_bytes"));
}

}  // namespace
}  // namespace spillway::test
