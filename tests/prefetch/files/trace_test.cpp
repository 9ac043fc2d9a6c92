#include "prefetch/files/trace.h"

#include <gtest/gtest.h>

#include <set>

#include "prefetch/block_sizes.h"
#include "prefetch/simulate/simulate.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/small_trace.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace um::literals;
using namespace std::chrono_literals;

Trace read(const nlohmann::json& file) { return read_trace(JsonFile{file.dump(), "t"}); }

TEST(Trace, KeepsWhatTheFileSays) {
  const Trace trace = read(small_trace());
  EXPECT_EQ(trace.name, "two layers");
  ASSERT_EQ(trace.graph.data.size(), 7U);
  EXPECT_EQ(trace.graph.data[0].name, "w");
  EXPECT_EQ(trace.graph.data[0].kind, DataKind::kState);
  EXPECT_EQ(trace.graph.data[2].size, 8_MiB);
  ASSERT_EQ(trace.graph.tasks.size(), 6U);
  const Task& first = trace.graph.tasks[0];
  EXPECT_EQ(first.kind, TaskKind::kLinear);
  EXPECT_TRUE(first.is_recomputable);
  EXPECT_EQ(first.reads, (std::vector{DataId{1}, DataId{0}}));
  EXPECT_EQ(first.writes, std::vector{DataId{2}});
  EXPECT_EQ(first.traffic, 14_MiB);  // x 2, w 4, its output 8
  EXPECT_EQ(trace.durations[0], std::vector{um::Nanoseconds{1000}});
  EXPECT_EQ(trace.graph.tasks[1].algorithms[0].workspace, 64_B);
}

TEST(Trace, PutsTheAlgorithmThatNeedsLeastWorkspaceFirst) {
  const Trace trace = read(small_trace());
  EXPECT_EQ(trace.graph.tasks[4].algorithms[0].name, "small");
  EXPECT_EQ(trace.graph.tasks[4].algorithms[1].name, "fast");
  EXPECT_EQ(trace.durations[4], (std::vector<um::Nanoseconds>{900ns, 500ns}));
}

TEST(Trace, GivesNamesThatOccurMoreThanOnceTheirIndex) {
  nlohmann::json file = small_trace();
  file["tasks"][5]["name"] = "ReLU #1";  // taken: the second task must find another
  const Trace trace = read(file);
  std::vector<std::string> names;
  for (const Task& task : trace.graph.tasks) names.push_back(task.name);
  EXPECT_EQ(names, (std::vector<std::string>{"MatMul #0", "ReLU #1 #1", "Loss", "ReLU #3",
                                             "MatMul #4", "ReLU #1"}));
  EXPECT_EQ(trace.graph.data[2].name, "tensor 11");
}

TEST(Trace, TakesWhatIsReadBeforeAnyTaskWroteItForState) {
  const Trace trace = read(small_trace());
  EXPECT_EQ(trace.graph.data[1].kind, DataKind::kState);   // x, the batch
  EXPECT_EQ(trace.graph.data[2].kind, DataKind::kTensor);  // written by the first task
}

TEST(Trace, RecomputesNothingThatDoesNotSayItMay) {
  const Trace trace = read(small_trace());
  for (std::size_t t = 1; t < 6; ++t) EXPECT_FALSE(trace.graph.tasks[t].is_recomputable) << t;
}

TEST(Trace, CountsAnOperandOnceThatIsNamedTwice) {
  nlohmann::json file = small_trace();
  file["tasks"][1]["reads"] = {11, 11};
  EXPECT_EQ(read(file).graph.tasks[1].reads, std::vector{DataId{2}});
}

TEST(Trace, LetsATaskHaveNoOperands) {
  nlohmann::json file = small_trace();
  file["tasks"][1]["reads"] = nlohmann::json::array();
  file["tasks"][1]["writes"] = nlohmann::json::array();
  EXPECT_TRUE(read(file).graph.tasks[1].writes.empty());
}

TEST(Trace, BecomesAProfileWithTheLinkOfAMachine) {
  const Trace trace = read(small_trace());
  const Profile profile = trace_profile(trace, toy_link());
  EXPECT_EQ(profile.source, "trace two layers");
  EXPECT_EQ(profile.graph, fingerprint(trace.graph));
  EXPECT_EQ(profile.durations, trace.durations);
  EXPECT_EQ(profile.link.offload, toy_link().offload);
}

// After the tasks of small_trace() live on: 11 (8 MiB); 11 and 12 (16); 11, 12, 20 (24); 11, 21;
// 22; nothing. So it turns after the loss.
TEST(PhaseGuess, TurnsWhereMostBytesLiveOn) {
  nlohmann::json file = small_trace();
  for (auto& task : file["tasks"]) task.erase("phase");
  const TaskGraph graph = read(file).graph;
  const std::vector<Phase> wanted{Phase::kForward,  Phase::kForward,  Phase::kForward,
                                  Phase::kBackward, Phase::kBackward, Phase::kUpdate};
  EXPECT_EQ(guess_phases(graph), wanted);
  for (std::size_t t = 0; t < wanted.size(); ++t) EXPECT_EQ(graph.tasks[t].phase, wanted[t]) << t;
}

TEST(PhaseGuess, LeavesWhatTheTraceSays) {
  nlohmann::json file = small_trace();
  file["tasks"][0]["phase"] = "update";
  EXPECT_EQ(read(file).graph.tasks[0].phase, Phase::kUpdate);
}

TEST(PhaseGuess, TakesAStepInWhichNothingLivesOnForForward) {
  TaskGraph graph;
  graph.add(Task{.name = "a"});
  graph.add(Task{.name = "b"});
  EXPECT_EQ(guess_phases(graph), (std::vector{Phase::kForward, Phase::kForward}));
  EXPECT_TRUE(guess_phases({}).empty());
}

// A real one: BERT-base at batch 256, recorded on an A100 (1369 tasks, 17.8 GB of weights, tensors
// of 33.5 GB at the peak).
class Bert : public ::testing::Test {
 protected:
  const Trace trace = read_trace(JsonFile{SPILLWAY_TRACES "/bert-base-b256-a100.json"});
};

TEST_F(Bert, IsReadAsItIs) {
  EXPECT_EQ(trace.graph.tasks.size(), 1369U);
  EXPECT_EQ(trace.graph.data.size(), 1463U);
  um::Nanoseconds compute{0};
  for (const auto& durations : trace.durations) compute += durations[0];
  EXPECT_EQ(compute.count(), 7'285'465'834);
  std::set<std::string> names;
  for (const Task& task : trace.graph.tasks) names.insert(task.name);
  EXPECT_EQ(names.size(), 1369U);
  EXPECT_TRUE(names.contains("Tanh_Forward"));
  EXPECT_TRUE(names.contains("Add_Forward #2"));
}

// The trace's own names say that the forward pass ends with task 477, makeLoss.
TEST_F(Bert, TurnsWhereItsNamesSay) {
  for (std::size_t t = 0; t < 470; ++t) EXPECT_EQ(trace.graph.tasks[t].phase, Phase::kForward) << t;
  for (std::size_t t = 490; t < trace.graph.tasks.size(); ++t) {
    const bool applies = trace.graph.tasks[t].name.find("Apply_Grad") != std::string::npos;
    EXPECT_EQ(trace.graph.tasks[t].phase, applies ? Phase::kUpdate : Phase::kBackward) << t;
  }
}

// A published unified-memory simulator takes 1.0035 of the compute time at best, with 40 GB and a
// link of 15.754 GB/s each way.
TEST_F(Bert, FitsIn40GBWithoutLosingTime) {
  const um::Bandwidth rate{15.754e9};
  const Profile profile =
      trace_profile(trace, {.offload = rate, .prefetch = rate, .latency = 10us});
  const Problem problem{.graph = trace.graph,
                        .profile = profile,
                        .budget = um::Bytes{40'000'000'000},
                        .page = choose_page(trace.graph),
                        .chunk = chunk_for(profile.link)};
  const Plan plan = planned("capacity", problem);
  EXPECT_EQ(reason_against(trace.graph, plan), "");
  const double ratio = um::seconds(simulate(plan, profile).makespan()) /
                       um::seconds(compute_time(profile, plan.runs));
  EXPECT_LT(ratio, 1.0035);
}

}  // namespace
}  // namespace spillway::prefetch
