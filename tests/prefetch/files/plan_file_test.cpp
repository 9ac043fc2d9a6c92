#include "prefetch/files/plan_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "prefetch/files/graph_stamp.h"
#include "prefetch/planners/catalogue.h"
#include "prefetch/planners/fractional.h"
#include "tests/prefetch/random_graph.h"
#include "tests/prefetch/random_profile.h"
#include "tests/refusal.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using test::refusal;
using namespace std::chrono_literals;
using nlohmann::json;

Plan read(const json& value, const TaskGraph& graph) {
  return read_plan(JsonFile{value.dump(), "p"}, graph);
}

RC_GTEST_PROP(PlanFile, GivesBackEveryPlan, ()) {
  const TaskGraph graph = random_graph();
  const Profile profile = random_profile(graph);
  Problem given{.graph = graph, .profile = profile, .page = kPage, .chunk = pages(2)};
  given.budget = near_need(graph, BlockSizes{graph, kPage}).smallest + pages(1);
  given.whole_blocks = *rc::gen::arbitrary<bool>();
  given.may_recompute = *rc::gen::arbitrary<bool>();
  for (const char* planner : {"fractional", "on-demand"}) {
    const Plan plan = std::get<Plan>(find_planner(planner).plan(given));
    RC_ASSERT(read(to_json(plan, graph), graph) == plan);
  }
}

// The file of a plan with moves for a chain of six layers.
class TamperedPlan : public ::testing::Test {
 protected:
  TamperedPlan() {
    const Profile profile = flat_profile(graph, 100ns);
    file = to_json(std::get<Plan>(Fractional{}.plan(problem(graph, profile, pages(14)))), graph);
  }
  [[nodiscard]] std::string complaint() const {
    return refusal([&] { return read(file, graph); });
  }
  TaskGraph graph = chain(6, pages(2));
  json file;
};

TEST_F(TamperedPlan, IsReadWhenNobodyTampered) { EXPECT_EQ(complaint(), "accepted"); }

TEST_F(TamperedPlan, IsRefusedForAnotherGraph) {
  graph.tasks[0].flops += 1;  // a cost does not make another graph
  EXPECT_EQ(complaint(), "accepted");
  graph.data[0].size = pages(3);
  EXPECT_EQ(complaint(), "p: graph belongs to another step or machine (" +
                             std::string{file["graph"]} + ", here " +
                             graph_stamp(fingerprint(graph)) +
                             "): give the --net, --batch, --image-size, --classes, "
                             "--aux-heads, --optimizer, "
                             "--conv-algorithm and --threads, and the --device, --precision and "
                             "--deterministic of a GPU, that it was made with, or make it again");
}

TEST_F(TamperedPlan, IsNotReadForAGraphWithTwoBlocksOfOneName) {
  graph.data[1].name = graph.data[0].name;
  file["graph"] = graph_stamp(fingerprint(graph));
  EXPECT_THROW(static_cast<void>(read(file, graph)), um::ContractError);
}

TEST_F(TamperedPlan, IsRefusedWithAnUnknownTask) {
  file["runs"][3]["task"] = "f99";
  EXPECT_EQ(complaint(), "p: runs[3].task is 'f99', which the network does not have");
}

TEST_F(TamperedPlan, IsRefusedWithAnUnknownAlgorithm) {
  file["runs"][0]["algorithm"] = "magic";
  EXPECT_EQ(complaint(), "p: runs[0].algorithm is 'magic', which load does not have here");
}

TEST_F(TamperedPlan, IsRefusedWithAnUnknownBlock) {
  file["offloads"][0]["data"] = "z";
  EXPECT_EQ(complaint(), "p: offloads[0].data is 'z', which the network does not have");
}

TEST_F(TamperedPlan, IsRefusedInAnotherVersion) {
  file["version"] = 2;
  EXPECT_EQ(complaint(), "p: version is 2; this program reads version 1");
}

TEST_F(TamperedPlan, IsRefusedWithWrongTypes) {
  file["budget_bytes"] = "much";
  EXPECT_EQ(complaint(), "p: budget_bytes is no whole number from 0 up");
  file["budget_bytes"] = 1;
  file["residency"] = "sometimes";
  EXPECT_EQ(complaint(), "p: residency is neither 'planned' nor 'on-demand'");
  file["residency"] = "planned";
  file["prefetches"] = json::object();
  EXPECT_EQ(complaint(), "p: prefetches is no array");
}

TEST_F(TamperedPlan, IsRefusedWithAConditionThatIsNone) {
  file["runs"][1]["after"] = json::array({1, 2});
  EXPECT_EQ(complaint(), "p: runs[1].after has not three elements");
  file["runs"][1]["after"] = json::array({1, 2, 1ULL << 32U});
  EXPECT_EQ(complaint(), "p: runs[1].after[2] is larger than 4294967295");
}

TEST_F(TamperedPlan, IsRefusedWithoutOneOfItsKeys) {
  const json whole = file;
  for (const auto& [key, value] : whole.items()) {
    file = whole;
    file.erase(key);
    EXPECT_EQ(complaint(), "p: " + key + " is missing");
  }
}

}  // namespace
}  // namespace spillway::prefetch
