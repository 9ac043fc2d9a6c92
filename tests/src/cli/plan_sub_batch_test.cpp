// `spillway plan --sub-batch`: a batch in parts.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/src/cli/program.h"
#include "tests/src/cli/refused.h"

namespace spillway::test {
namespace {

using nlohmann::json;

Arguments lenet_plan(const Arguments& more) {
  return {"plan --net lenet --batch 512 --machine v100", more};
}

json planned(const Arguments& more) { return json_of({lenet_plan(more), "--json -"}); }

// One byte less than the smallest budget of the whole batch.
std::string too_little() {
  const std::uint64_t smallest = planned({}).at("min_budget_bytes");
  return std::to_string(smallest - 1);
}

TEST(PlanSubBatch, IsTheWholeBatchWhereItIsOff) {
  const json figures = planned("--sub-batch off");
  EXPECT_EQ(figures.at("sub_batch"), 512);
  EXPECT_EQ(figures.at("sub_steps"), 1);
  EXPECT_EQ(figures.at("min_budget_bytes"), planned({}).at("min_budget_bytes"));
}

TEST(PlanSubBatch, OfTheSizeAskedForIsNamed) {
  const json figures = planned("--sub-batch 128");
  EXPECT_EQ(figures.at("sub_batch"), 128);
  EXPECT_EQ(figures.at("sub_steps"), 4);
  EXPECT_EQ(figures.at("verified"), true);
}

TEST(PlanSubBatch, MakesABudgetFeasibleThatTheWholeBatchBreaks) {
  const std::string budget = too_little();
  expect_refused(kFailure, lenet_plan({"--budget", budget}), {"needs most", "smallest budget"});
  for (const char* size : {"128", "auto"}) {
    const json figures = planned({"--budget", budget, "--sub-batch", size});
    EXPECT_GT(figures.at("sub_steps"), 1) << size;
    EXPECT_LT(figures.at("sub_batch"), 512) << size;
    EXPECT_LE(figures.at("peak_bytes"), std::stoull(budget)) << size;
    EXPECT_EQ(figures.at("feasible"), true) << size;
  }
}

TEST(PlanSubBatch, ThatIsStillTooLargeSaysWhatItNeeds) {
  expect_refused(kFailure, lenet_plan({"--budget", too_little(), "--sub-batch 512"}),
                 {"smallest budget"});
  expect_refused(kFailure, lenet_plan("--budget 1MiB --sub-batch 128"),
                 {"in sub-batches of 128", "smallest budget"});
}

TEST(PlanSubBatch, RefusesWhatIsNoSize) {
  for (const std::string size : {"0", "-8", "x", "1.5", "AUTO", "64 "}) {
    expect_refused(kBadUsage, lenet_plan({"--sub-batch", size}),
                   {"--sub-batch", "is no size of sub-batches", "off, auto, or a number"});
  }
}

TEST(PlanSubBatch, RefusesMoreThanTheBatch) {
  expect_refused(kFailure, lenet_plan("--sub-batch 513"),
                 {"--sub-batch 513", "more than the batch of 512"});
}

// A trace has no times at other batch sizes.
TEST(PlanSubBatch, RefusesATrace) {
  expect_refused(kFailure,
                 {"plan --trace-in", std::string{SPILLWAY_TRACES "/bert-base-b256-a100.json"},
                  "--machine a100 --sub-batch 64"},
                 {"--sub-batch needs times at other batch sizes", "--net and --machine"});
}

}  // namespace
}  // namespace spillway::test
