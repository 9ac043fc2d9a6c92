// Trace files, each with one defect: the error names the place and the cause. Also small traces in
// which update tasks write weights between backward tasks, found by a random search: planners once
// recomputed with weights that had changed since. In "in_place" a forward task changes a tensor
// that another has read.
#include "prefetch/files/trace.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "prefetch/block_sizes.h"
#include "prefetch/bounds/bounds.h"
#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/moves/offload_plan.h"
#include "prefetch/simulate/simulate.h"
#include "prefetch/verify/dataflow.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/tampered.h"
#include "tests/prefetch/toy.h"
#include "tests/prefetch/toy_files.h"
#include "tests/prefetch/trace_checker.h"

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

TEST(Trace, IsWrittenAsItWasRead) {
  const Trace trace = read(small_trace());
  EXPECT_EQ(to_json(trace).at("version"), 1);
  const Trace again = read(to_json(trace));
  EXPECT_EQ(again.name, trace.name);
  EXPECT_EQ(fingerprint(again.graph), fingerprint(trace.graph));
  EXPECT_EQ(again.durations, trace.durations);
  for (std::size_t t = 0; t < trace.graph.tasks.size(); ++t) {
    EXPECT_EQ(again.graph.tasks[t].kind, trace.graph.tasks[t].kind);
    EXPECT_EQ(again.graph.tasks[t].is_recomputable, trace.graph.tasks[t].is_recomputable);
  }
}

TEST(SecondTrace, SaysMicroBatchesAndWhatTasksFollow) {
  nlohmann::json file = small_trace();
  file["version"] = 2;
  file["tasks"][4]["micro_batch"] = 3;
  file["tasks"][5]["after"] = {3, 0, 3};
  const Trace trace = read(file);
  EXPECT_EQ(trace.graph.tasks[4].micro_batch, 3U);
  EXPECT_FALSE(trace.graph.tasks[5].micro_batch);
  EXPECT_EQ(trace.graph.tasks[5].after, (std::vector{TaskId{0}, TaskId{3}}));
  EXPECT_NE(fingerprint(trace.graph), fingerprint(read(small_trace()).graph));
  const nlohmann::json written = to_json(trace);
  EXPECT_EQ(written.at("version"), 2);
  EXPECT_EQ(to_json(read(written)), written);
}

TEST(SecondTrace, IsTheFirstWithoutWhatIsNew) {
  nlohmann::json file = small_trace();
  file["version"] = 2;
  EXPECT_EQ(fingerprint(read(file).graph), fingerprint(read(small_trace()).graph));
}

TEST(SecondTrace, HoldsTasksInVariants) {
  const Trace trace = read(varied_trace(2));
  const VariedStep& varied = trace.varied;
  ASSERT_EQ(varied.groups.size(), 2U);
  EXPECT_EQ(varied.groups[0].names, (std::vector<std::string>{"all", "some", "none"}));
  ASSERT_EQ(varied.groups[1].members.size(), 2U);
  EXPECT_EQ(varied.groups[1].members[0].task, TaskId{2});  // f2
  EXPECT_EQ(varied.groups[1].members[1].task, TaskId{4});  // b2
  EXPECT_EQ(to_json(read(to_json(trace))), to_json(trace));
}

std::string used_by(const TaskGraph& graph, const std::string& name) {
  const Task& task = *std::ranges::find(graph.tasks, name, &Task::name);
  std::string text = task.variant + ":";
  for (const DataId id : task.reads) text += " " + graph[id].name;
  text += " >";
  for (const DataId id : task.writes) text += " " + graph[id].name;
  return text;
}

TEST(SecondTrace, IsTheStepOfItsFirstVariants) {
  const Trace trace = read(varied_trace(2));
  EXPECT_EQ(used_by(trace.graph, "f1"), "all: x0 > x1 all1");
  EXPECT_EQ(used_by(trace.graph, "b1"), "all: x0 g2 all1 > g1");
  EXPECT_EQ(trace.durations[5], std::vector<um::Nanoseconds>{20ms});
  EXPECT_EQ(trace.graph.tasks[1].traffic, 80_MiB);
  EXPECT_EQ(trace.graph.data.size(), 8U);  // none of what only "some" saves
  EXPECT_EQ(trace.graph.tasks[5].phase, Phase::kBackward);
}

TEST(SecondTrace, HasAStepForEachChoice) {
  const VariedStep varied = read(varied_trace(2)).varied;
  const TimedStep step = varied.with({2, 1});
  EXPECT_EQ(used_by(step.graph, "f1"), "none: x0 > x1");
  EXPECT_EQ(used_by(step.graph, "b1"), "none: x0 g2 > g1");
  EXPECT_EQ(used_by(step.graph, "b2"), "some: x1 g some2 > g2");
  EXPECT_EQ(step.durations[4], std::vector<um::Nanoseconds>{24ms});
  EXPECT_EQ(step.durations[5], std::vector<um::Nanoseconds>{30ms});
  EXPECT_EQ(varied.fastest(), (VariantChoice{0, 0}));
  EXPECT_EQ(varied.leanest(2_MiB), (VariantChoice{2, 2}));
  EXPECT_EQ(varied.named({{"b1", "some"}}), (VariantChoice{1, 0}));
  EXPECT_EQ(test::refusal([&] {
              return varied.named({{"loss", "all"}});
            }),
            "task 'loss' has no variant 'all'; the plan is of another trace");
  EXPECT_EQ(test::refusal([&] {
              return varied.named({{"b1", "most"}});
            }),
            "task 'b1' has no variant 'most'; the plan is of another trace");
}

TEST(SecondTrace, FindsAVariantByItsNameInAnyOrder) {
  nlohmann::json file = varied_trace(1);
  std::reverse(file["tasks"][3]["variants"].begin(), file["tasks"][3]["variants"].end());
  EXPECT_EQ(used_by(read(file).graph, "b1"), "all: x0 g all1 > g1");
}

TEST(Trace, PutsTheAlgorithmThatNeedsLeastWorkspaceFirst) {
  const Trace trace = read(small_trace());
  EXPECT_EQ(trace.graph.tasks[4].algorithms[0].name, "small");
  EXPECT_EQ(trace.graph.tasks[4].algorithms[1].name, "fast");
  EXPECT_EQ(trace.durations[4], (std::vector<um::Nanoseconds>{900ns, 500ns}));
}

TEST(Trace, GivesNamesThatOccurMoreThanOnceTheirIndex) {
  nlohmann::json file = small_trace();
  file["tasks"][5]["name"] = "ReLU #1";  // taken: the second task needs another name
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

// Live after the tasks of small_trace(): 11 (8 MiB); 11 and 12 (16); 11, 12, 20 (24); 11, 21; 22;
// nothing. The step thus turns after the loss.
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

// A real trace: BERT-base at batch 256, recorded on an A100 (1369 tasks, 17.8 GB of weights, 33.5
// GB of tensors at the peak).
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

// According to task names, the forward pass ends with task 477, makeLoss.
TEST_F(Bert, TurnsWhereItsNamesSay) {
  for (std::size_t t = 0; t < 470; ++t) EXPECT_EQ(trace.graph.tasks[t].phase, Phase::kForward) << t;
  for (std::size_t t = 490; t < trace.graph.tasks.size(); ++t) {
    const bool applies = trace.graph.tasks[t].name.find("Apply_Grad") != std::string::npos;
    EXPECT_EQ(trace.graph.tasks[t].phase, applies ? Phase::kUpdate : Phase::kBackward) << t;
  }
}

// A published unified-memory simulator needs at best 1.0035 of the compute time, with 40 GB and a
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

using nlohmann::json;
using test::refusal;

constexpr std::array kTraceTamperings{
    Tampering{"/format", "\"spillway-plan\"", "'spillway-plan', not 'spillway-trace'"},
    Tampering{"/version", "3", "reads version 2"},
    Tampering{"/version", "", "missing"},
    Tampering{"/name", "", "missing"},
    Tampering{"/name", "\"a\\nb\"", "control character"},
    Tampering{"/data", "", "missing"},
    Tampering{"/data", "7", "no array"},
    Tampering{"/data/1", "[]", "no object"},
    Tampering{"/data/1/id", "", "missing"},
    Tampering{"/data/1/id", "\"x\"", "no whole number from 0 up"},
    Tampering{"/data/1/id", "7", "7, which an earlier block has"},
    Tampering{"/data/1/bytes", "-1", "no whole number from 0 up"},
    Tampering{"/data/1/bytes", "1.5", "no whole number from 0 up"},
    Tampering{"/data/1/bytes", "18446744073709551615", "larger than 4398046511104"},
    Tampering{"/data/1/kind", "\"bias\"", "'bias', none of weight, tensor"},
    Tampering{"/data/2/name", "null", "no string"},
    Tampering{"/data/0/offloadable", "1", "neither true nor false"},
    Tampering{"/data/1/offloadable", "true", "only for weights"},
    Tampering{"/tasks", "", "missing"},
    Tampering{"/tasks", "[]", "empty"},
    Tampering{"/tasks/3", "null", "no object"},
    Tampering{"/tasks/3/name", "", "missing"},
    Tampering{"/tasks/3/reads", "", "missing"},
    Tampering{"/tasks/3/reads/1", "99", "99, which is no id in data"},
    Tampering{"/tasks/3/reads/1", "-20", "no whole number from 0 up"},
    Tampering{"/tasks/3/writes", "21", "no array"},
    Tampering{"/tasks/3/writes/0", "8", "8, which is no id in data"},
    Tampering{"/tasks/3/duration_ns", "", "missing"},
    Tampering{"/tasks/3/duration_ns", "-1", "no whole number from 0 up"},
    Tampering{"/tasks/3/duration_ns", "1000000000000001", "larger than 1000000000000000"},
    Tampering{"/tasks/3/duration_ns", "1000000000000000", "all times together"},
    Tampering{"/tasks/3/workspace_bytes", "", "missing"},
    Tampering{"/tasks/3/workspace_bytes", "true", "no whole number from 0 up"},
    Tampering{"/tasks/3/phase", "\"loss\"", "'loss', none of forward, backward, update"},
    Tampering{"/tasks/3/kind", "\"conv\"", "'conv', none of other, convolution, linear"},
    Tampering{"/tasks/3/recomputable", "1", "neither true nor false"},
    Tampering{"/tasks/4/algorithms", "[]", "empty"},
    Tampering{"/tasks/4/algorithms/1/name", "\"fast\"", "which an earlier algorithm has"},
    Tampering{"/tasks/4/algorithms/1/duration_ns", "", "missing"},
    Tampering{"/title", "1", "unknown; there are format, version, name, tasks, data"},
    Tampering{"/data/1/byte", "1", "unknown; did you mean 'bytes'?"},
    Tampering{"/tasks/3/recomputeable", "true", "did you mean 'recomputable'?"},
    Tampering{"/tasks/4/algorithms/1/work_space_bytes", "1", "did you mean 'workspace_bytes'?"},
    Tampering{"/tasks/3/after", "[0]", "unknown; there are name, reads"},
};

constexpr std::array kSecondTamperings{
    Tampering{"/tasks/1/micro_batch", "-1", "no whole number from 0 up"},
    Tampering{"/tasks/1/micro_batch", "1048577", "larger than 1048576"},
    Tampering{"/tasks/1/after", "0", "no array"},
    Tampering{"/tasks/1/after", "[1]", "is 1; of this task it must be less than 1, the number",
              "tasks[1].after[0]"},
    Tampering{"/tasks/1/after", "[\"load\"]", "no whole number", "tasks[1].after[0]"},
    Tampering{"/tasks/1/duration_ns", "1", "is for each of the variants, not beside them"},
    Tampering{"/tasks/1/algorithms", "[]", "is for each of the variants, not beside them"},
    Tampering{"/tasks/1/variants", "{}", "no array"},
    Tampering{"/tasks/1/variants", "[]", "empty"},
    Tampering{"/tasks/1/variants/1/name", "\"all\"", "which an earlier variant has"},
    Tampering{"/tasks/1/variants/1/name", "", "missing"},
    Tampering{"/tasks/1/variants/1/duration_ns", "", "missing"},
    Tampering{"/tasks/1/variants/1/writes/0", "99", "99, which is no id in data"},
    Tampering{"/tasks/1/variants/1/phase", "1", "unknown; there are name, reads"},
    Tampering{"/tasks/3/variants/2", "", "lacks one with the name 'none'", "tasks[3].variants"},
    Tampering{"/tasks/3/variants/0/name", "\"most\"",
              "is 'most', which the variants that it goes with (\"same_variant_as\") have not"},
    Tampering{"/tasks/3/same_variant_as", "0", "is 0, a task without variants"},
    Tampering{"/tasks/3/same_variant_as", "3", "is 3; of this task it must be less than 3"},
    Tampering{"/tasks/2/same_variant_as", "1", "is only for tasks with variants"},
    Tampering{"/tasks/3/same_variant_as", "",
              "has all1, which only variants write that need not be taken with this",
              "tasks[3].variants[0].reads"},
    Tampering{"/tasks/3/variants/1/reads", "[2]", "has all1, which only variants write"},
    Tampering{"/tasks/2/reads", "[2]", "has all1, which only variants write"},
};

Trace read_text(const std::string& text) { return read_trace(JsonFile{text, "t"}); }

TEST(BadTrace, IsRefusedWithThePlaceOfWhatIsWrong) {
  expect_refusals(small_trace(), "t", kTraceTamperings,
                  [](const json& file) { return read_text(file.dump()); });
}

TEST(BadTrace, OfTheSecondVersionIsRefusedTheSameWay) {
  expect_refusals(varied_trace(1), "t", kSecondTamperings,
                  [](const json& file) { return read_text(file.dump()); });
}

TEST(BadTrace, IsRefusedWhenItIsNoJson) {
  const auto complaint = [](const std::string& text) {
    return refusal([&] { return read_text(text); });
  };
  EXPECT_EQ(complaint(R"({"format": NaN})"), "t: not JSON, at byte 12");
  const std::string text = small_trace().dump();
  EXPECT_TRUE(complaint(text.substr(0, text.size() / 2)).starts_with("t: not JSON, at byte"));
  EXPECT_EQ(complaint("[1]"), "t: is no object");
}

// 17 blocks of 4 TiB: the last one exceeds 64 TiB.
TEST(BadTrace, IsRefusedWithMoreBytesThanAnyMemory) {
  json file = small_trace();
  file["data"] = json::array();
  for (int i = 0; i < 17; ++i) {
    file["data"].push_back({{"id", i}, {"bytes", 1ULL << 42U}, {"kind", "tensor"}});
  }
  EXPECT_EQ(refusal([&] { return read_text(file.dump()); }),
            "t: data[16].bytes makes all sizes together more than 70368744177664");
}

TEST(BadTrace, IsRefusedWithMoreOperandsThanAnyTask) {
  json file = small_trace();
  file["tasks"][0]["reads"] = std::vector<int>(4097, 10);
  EXPECT_EQ(refusal([&] { return read_text(file.dump()); }),
            "t: tasks[0].reads has 4097 elements, more than 4096");
}

// File, planner, whether weights are offloadable.
class UpdateTraces : public ::testing::TestWithParam<std::tuple<std::string, std::string, bool>> {
 protected:
  [[nodiscard]] static Trace trace() {
    const auto& [file, planner, offload_weights] = GetParam();
    return read_trace(JsonFile{std::string{SPILLWAY_TRACES "/updates/"} + file + ".json"},
                      {.offload_weights = offload_weights});
  }
  // Returns the least budget, a third more, and two thirds of the resident need.
  [[nodiscard]] static std::vector<um::Bytes> budgets(const NearNeed& need) {
    return {need.smallest, um::Bytes{need.smallest.count() / 3 * 4},
            std::max(need.smallest, um::Bytes{need.resident.count() / 3 * 2})};
  }
};

void expect_sound(const Problem& given, const Plan& plan) {
  ASSERT_EQ(reason_against(given.graph, plan), "");
  const Timeline timeline = simulate(plan, given.profile);
  EXPECT_EQ(check_trace(given.graph, plan, timeline, given.profile.link), "");
  if (plan.budget != given.budget) return;
  const Bounds bounds = lower_bounds(given);
  EXPECT_LE(bounds.mixed, bounds.mixed_transition);
  EXPECT_LE(bounds.mixed_transition, timeline.makespan());
}

TEST_P(UpdateTraces, ArePlannedSoundly) {
  const Trace given = trace();
  const Profile profile = trace_profile(given, find_machine("k40m").link);
  const um::Bytes page = choose_page(given.graph);
  const Planner& planner = find_planner(std::get<1>(GetParam()));
  for (const um::Bytes budget : budgets(near_need(given.graph, BlockSizes{given.graph, page}))) {
    Problem problem{.graph = given.graph,
                    .profile = profile,
                    .budget = budget,
                    .page = page,
                    .chunk = chunk_for(profile.link),
                    .may_recompute = true};
    const Plan plan = planned_with_more(planner, problem);
    expect_sound(problem, plan);
  }
}

// A writes x; B makes v from x; C, which takes 9 s, updates x in place; D reads x; E reads v.
// Recomputing v takes A and B, but not C: A, B, C, D, T, U, A again, B again, E compute for 9.008
// s.
TEST(InPlaceTrace, HasBoundsThatCountOnlyWhatABlockIsMadeFrom) {
  const Trace trace = read_trace(JsonFile{SPILLWAY_TRACES "/updates/in_place.json"});
  const Profile profile = trace_profile(trace, find_machine("k40m").link);
  const um::Bytes page = choose_page(trace.graph);
  const Problem given{.graph = trace.graph,
                      .profile = profile,
                      .budget = near_need(trace.graph, BlockSizes{trace.graph, page}).smallest,
                      .page = page,
                      .chunk = chunk_for(profile.link),
                      .may_recompute = true};
  std::vector<TaskRun> runs = runs_in_order(trace.graph);
  for (const TaskId again : {TaskId{0}, TaskId{1}}) {
    runs.insert(runs.end() - 1, {.task = again, .is_recomputation = true});
  }
  ASSERT_FALSE(check_dataflow(trace.graph, runs));
  const auto evaluated = OffloadPlanner{given}.plan(runs);
  ASSERT_TRUE(evaluated);
  EXPECT_EQ(evaluated->makespan, std::chrono::milliseconds{9008});
  EXPECT_LE(lower_bounds(given).mixed, evaluated->makespan);
  EXPECT_LE(lower_bounds(given).mixed_transition, evaluated->makespan);
}

std::string name_of(const ::testing::TestParamInfo<UpdateTraces::ParamType>& info) {
  const auto& [file, planner, offload_weights] = info.param;
  return file + "_" + planner + (offload_weights ? "_offloads_weights" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Files, UpdateTraces,
    ::testing::Combine(::testing::Values("1034", "1077", "1083", "5025", "in_place"),
                       ::testing::Values("joint", "recompute"), ::testing::Bool()),
    name_of);

}  // namespace
}  // namespace spillway::prefetch
